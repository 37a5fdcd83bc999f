/* A wall clock that a test sets. Preloaded into a process, it adds an offset to the true time: nanoseconds, and a
 * number of them for each that has passed since a moment, both from the file in WALL_CLOCK. Other clocks are unchanged. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

struct told {
    int64_t ahead;
    /* This many additional nanoseconds for each one, by the monotonic clock, since that moment. */
    int64_t haste;
    int64_t since;
};

static const volatile struct told *told;

__attribute__((constructor)) static void look(void) {
    const char *path = getenv("WALL_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *page = file < 0 ? MAP_FAILED : mmap(NULL, sizeof(struct told), PROT_READ, MAP_SHARED, file, 0);
    /* With a clock that cannot be set, tests would pass without proving anything. */
    if (page == MAP_FAILED) abort();
    close(file);
    told = page;
}

static int64_t nanoseconds(clockid_t clock) {
    struct timespec at;
    syscall(SYS_clock_gettime, clock, &at);
    return at.tv_sec * INT64_C(1000000000) + at.tv_nsec;
}

static int64_t now(void) {
    int64_t at = nanoseconds(CLOCK_REALTIME);
    /* Libraries that were loaded before this one may read the clock before `look`. */
    if (!told) return at;
    int64_t more = told->haste ? (nanoseconds(CLOCK_MONOTONIC) - told->since) * told->haste : 0;
    return at + told->ahead + more;
}

int clock_gettime(clockid_t clock, struct timespec *at) {
    if (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE) return (int)syscall(SYS_clock_gettime, clock, at);
    int64_t all = now();
    at->tv_sec = all / 1000000000;
    at->tv_nsec = all % 1000000000;
    return 0;
}

int gettimeofday(struct timeval *at, void *zone) {
    (void)zone;
    int64_t all = now();
    at->tv_sec = all / 1000000000;
    at->tv_usec = all % 1000000000 / 1000;
    return 0;
}

time_t time(time_t *at) {
    time_t seconds = now() / 1000000000;
    if (at) *at = seconds;
    return seconds;
}
