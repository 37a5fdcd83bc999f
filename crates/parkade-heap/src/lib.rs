//! Gives free memory back to the system: the only foreign function that Parkade declares itself.
//!
//! The allocator of glibc gives back by itself what lies at the end of its heap. Below a single block that is in use, it keeps everything: after a
//! burst of 10,000 requests these were 5 to 7 MB, more than what the 10,000 connections need that stay.

mod burst;

pub use burst::Burst;

/// Gives back every page of the heap that is free. Takes 20 µs if there is none, and about 40 µs for each MiB. Does nothing where the
/// C library is another one.
pub fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    glibc::malloc_trim(0);
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod glibc {
    use std::ffi::c_int;

    #[expect(
        unsafe_code,
        reason = "the declaration is that of malloc.h, and no argument is wrong: the function takes the lock of the heap as every allocation does, and \
                  gives back only pages of which nothing is in use"
    )]
    unsafe extern "C" {
        /// Keeps this many bytes at the end of the heap; see `malloc_trim(3)`.
        pub safe fn malloc_trim(keep: usize) -> c_int;
    }
}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    use std::fs;

    #[test]
    fn what_is_free_below_a_block_in_use_goes_back() {
        const COUNT: usize = 40_000;
        let resident_pages = || -> usize {
            let statm = fs::read_to_string("/proc/self/statm").expect("Linux has it");
            statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).expect("the second number")
        };
        let mut burst: Vec<Box<[u8; 500]>> = (0..COUNT).map(|_| Box::new([1; 500])).collect();
        let in_use = burst.pop();
        burst.clear();
        let before = resident_pages();
        super::give_back();
        assert!(before.saturating_sub(resident_pages()) > COUNT * 400 / 4096, "{before} and {}", resident_pages());
        drop(in_use);
    }
}
