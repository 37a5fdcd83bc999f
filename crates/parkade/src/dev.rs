//! `parkade dev`: notices when the code of the application has changed: in its folder, and where workers say that they have
//! loaded it from.

mod own_files;
mod patterns;

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use notify::event::{EventKind, ModifyKind};
use notify::{RecommendedWatcher, RecursiveMode, Watcher};

use crate::language::Language;

pub use own_files::OwnFilesListener;
pub use patterns::Patterns;

/// An editor writes a file in several steps, a checkout many files. All changes within this time count as one.
const QUIET_TIME: Duration = Duration::from_millis(100);
/// The kernel allows a user about 8,000 watches. Then: further folders are not watched, and a warning says so.
const FOLDERS_COUNT_MAX: usize = 2_000;

/// A folder that cannot be watched.
#[derive(Debug, thiserror::Error)]
pub enum DevError {
    #[error("cannot watch {} for changes: {source}; use `parkade serve` where that is impossible", folder.display())]
    Watch { folder: PathBuf, source: notify::Error },
    #[error("cannot start the thread that watches for changes: {0}")]
    Thread(io::Error),
}

/// Watches until dropped.
#[derive(Debug)]
#[must_use]
pub struct FolderWatch(mpsc::Sender<FolderEvent>);

/// What a [`FolderWatch`] will hear, also from before it exists.
#[derive(Debug)]
pub struct FolderEvents {
    tell: mpsc::Sender<FolderEvent>,
    told: mpsc::Receiver<FolderEvent>,
}

/// Where the server says which code it serves.
#[derive(Debug, Clone)]
pub struct LoadedCode(mpsc::Sender<FolderEvent>);

#[derive(Debug)]
enum FolderEvent {
    Seen(notify::Result<notify::Event>),
    Loaded(Vec<PathBuf>),
    Stop,
}

/// Sends a unit to `changed` after each change in the folder of the application. Give the channel a capacity of 1: one
/// pending change is enough.
pub fn watch(
    folder: &Path,
    patterns: Patterns,
    changed: tokio::sync::mpsc::Sender<()>,
    FolderEvents { tell, told }: FolderEvents,
) -> Result<FolderWatch, DevError> {
    let error = |source| DevError::Watch { folder: folder.into(), source };
    let seen = tell.clone();
    // If the receiver is gone, the change does not matter.
    let watcher = notify::recommended_watcher(move |event| drop(seen.send(FolderEvent::Seen(event)))).map_err(error)?;
    let others: Vec<PathBuf> = patterns.folders().collect();
    let mut folders = Folders::new(watcher, patterns);
    folders.add(folder).map_err(error)?;
    for folder in others {
        folders.add(&folder).map_err(|source| DevError::Watch { folder, source })?;
    }
    let thread = std::thread::Builder::new().name("dev".into());
    thread.spawn(move || listen(&told, folders, &changed)).map_err(DevError::Thread)?;
    Ok(FolderWatch(tell))
}

impl Default for FolderEvents {
    fn default() -> Self {
        let (tell, told) = mpsc::channel();
        Self { tell, told }
    }
}

impl FolderEvents {
    pub fn loaded_code(&self) -> LoadedCode {
        LoadedCode(self.tell.clone())
    }
}

impl LoadedCode {
    /// Watches these folders and files, too, from now on; as a worker names them, of which code may have been loaded or not.
    pub fn add(&self, watch: &[String]) {
        // A worker that does not name them absolutely does not say where they are.
        let paths: Vec<PathBuf> = watch.iter().map(PathBuf::from).filter(|path| path.is_absolute()).collect();
        if !paths.is_empty() {
            // If the receiver is gone, the server is ending.
            let _ = self.0.send(FolderEvent::Loaded(paths));
        }
    }
}

impl Drop for FolderWatch {
    fn drop(&mut self) {
        let _ = self.0.send(FolderEvent::Stop);
    }
}

fn listen(told: &mpsc::Receiver<FolderEvent>, mut folders: Folders, changed: &tokio::sync::mpsc::Sender<()>) {
    loop {
        let next = if folders.has_changed() { told.recv_timeout(QUIET_TIME) } else { told.recv().map_err(Into::into) };
        match next {
            Ok(FolderEvent::Seen(Ok(event))) => folders.note(&event),
            Ok(FolderEvent::Seen(Err(error))) => {
                tracing::warn!("a changed file may have been missed; save it again if nothing reloads: {error}");
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {
                if folders.take_changes() {
                    let _ = changed.try_send(());
                }
            }
            Ok(FolderEvent::Loaded(paths)) => folders.add_loaded(&paths),
            Ok(FolderEvent::Stop) | Err(mpsc::RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// The folders that are watched, one by one: a recursive watch would use up the kernel's watches on a virtual
/// environment.
struct Folders {
    watcher: RecommendedWatcher,
    count: usize,
    /// Those that are watched, without links in their paths.
    watched: HashSet<PathBuf>,
    /// Folders of which only these files are watched.
    partly: HashMap<PathBuf, HashSet<PathBuf>>,
    patterns: Patterns,
    /// Files that have changed since it was quiet.
    changed: HashSet<PathBuf>,
}

impl Folders {
    fn new(watcher: RecommendedWatcher, patterns: Patterns) -> Self {
        Self { watcher, count: 0, watched: HashSet::new(), partly: HashMap::new(), patterns, changed: HashSet::new() }
    }

    fn add(&mut self, folder: &Path) -> notify::Result<()> {
        if !self.begin(folder)? {
            return Ok(());
        }
        self.watched.insert(without_links(folder));
        self.partly.remove(folder);
        // Links to folders are not followed: they may form a cycle.
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        for entry in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
            if !self.patterns.is_ignored(&entry.path()) {
                self.add_below(&entry.path());
            }
        }
        Ok(())
    }

    /// Watches a folder alone, unless there are too many.
    fn begin(&mut self, folder: &Path) -> notify::Result<bool> {
        self.count += 1;
        if self.count > FOLDERS_COUNT_MAX {
            if self.count == FOLDERS_COUNT_MAX + 1 {
                tracing::warn!("more than {FOLDERS_COUNT_MAX} folders: not watching {} for changes", folder.display());
            }
            return Ok(false);
        }
        self.watcher.watch(folder, RecursiveMode::NonRecursive)?;
        Ok(true)
    }

    /// Code was loaded from these folders, and from these files, whose folders may have nothing else to do with it.
    fn add_loaded(&mut self, paths: &[PathBuf]) {
        for path in paths {
            let folder = if path.is_dir() { Some(&**path) } else { path.parent() };
            let Some(folder) = folder.filter(|folder| !self.watched.contains(&without_links(folder))) else { continue };
            if folder == path {
                tracing::debug!("watching {} for changes: code was loaded from there", folder.display());
                self.add_below(folder);
            } else {
                self.add_file(folder, path);
            }
        }
    }

    fn add_file(&mut self, folder: &Path, file: &Path) {
        if !self.partly.contains_key(folder) {
            match self.begin(folder) {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => return tracing::debug!("cannot watch {} for changes: {error}", file.display()),
            }
        }
        self.partly.entry(folder.into()).or_default().insert(file.into());
    }

    /// A folder that is gone again, or that we may not read, is skipped.
    fn add_below(&mut self, folder: &Path) {
        if let Err(error) = self.add(folder) {
            tracing::debug!("cannot watch {} for changes: {error}", folder.display());
        }
    }

    /// Remembers what has changed. New folders are watched from here on.
    fn note(&mut self, event: &notify::Event) {
        if !is_change(event.kind) {
            return;
        }
        let is_new = matches!(event.kind, EventKind::Create(_) | EventKind::Modify(ModifyKind::Name(_)));
        for path in &event.paths {
            if let Some(files) = path.parent().and_then(|folder| self.partly.get(folder)) {
                if files.contains(path) {
                    self.changed.insert(path.clone());
                }
                continue;
            }
            if self.patterns.is_ignored(path) {
                continue;
            }
            if is_new && path.is_dir() {
                self.add_below(path);
                // Files that were put into it before it was watched were not seen.
                self.look_through(path);
            } else if self.patterns.is_watched(path) {
                self.changed.insert(path.clone());
            }
        }
    }

    fn look_through(&mut self, folder: &Path) {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        for path in entries.map(|entry| entry.path()).filter(|path| !path.is_symlink()) {
            if self.patterns.is_ignored(&path) {
                continue;
            }
            if path.is_dir() {
                self.look_through(&path);
            } else if self.patterns.is_watched(&path) {
                self.changed.insert(path);
            }
        }
    }

    fn has_changed(&self) -> bool {
        !self.changed.is_empty()
    }

    /// Whether anything has changed that the application did not write itself. By now it has told of what it wrote.
    fn take_changes(&mut self) -> bool {
        let changed = std::mem::take(&mut self.changed);
        changed.iter().any(|path| !self.patterns.is_own(path))
    }
}

/// The folder of a file; for a module, the current folder. `directory`: in which the application is loaded, if not in the
/// current one.
pub fn folder(target: &str, directory: Option<&Path>) -> PathBuf {
    let folder = folder_of(target);
    directory.map_or(folder.clone(), |directory| directory.join(folder))
}

fn folder_of(target: &str) -> PathBuf {
    let file = Path::new(target.rsplit_once(':').map_or(target, |(file, _)| file));
    let is_file = Language::of_file(file).is_some();
    let parent = file.parent().filter(|parent| is_file && !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new(".")).into()
}

fn without_links(folder: &Path) -> PathBuf {
    std::fs::canonicalize(folder).unwrap_or_else(|_| folder.into())
}

/// Reading a file is not a change. A change of its times is: `touch` requests a reload.
fn is_change(kind: EventKind) -> bool {
    match kind {
        EventKind::Create(_) | EventKind::Modify(_) | EventKind::Remove(_) | EventKind::Any => true,
        EventKind::Access(_) | EventKind::Other => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A temporary folder.
    struct Scratch(PathBuf);

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn scratch(name: &str) -> Scratch {
        let folder = std::env::temp_dir().join(format!("parkade-dev-{name}-{}", std::process::id()));
        fs::create_dir_all(folder.join(".venv")).unwrap();
        fs::create_dir_all(folder.join("shop")).unwrap();
        Scratch(folder)
    }

    #[test]
    fn the_folder_of_a_target_is_that_of_its_file() {
        for (target, expected) in [
            ("shop:app", "."),
            ("shop.web:app", "."),
            ("app.py", "."),
            ("examples/hola/app.py", "examples/hola"),
            ("/srv/shop/app.py:application", "/srv/shop"),
            ("bin/app.psgi", "bin"),
            ("Shop::Web", "."),
        ] {
            assert_eq!(folder(target, None), Path::new(expected), "{target}");
        }
    }

    #[test]
    fn a_change_is_told_once_and_what_is_ignored_never() {
        let scratch = scratch("change");
        let (sender, mut changed) = tokio::sync::mpsc::channel(1);
        let watch = watch(&scratch.0, Patterns::default(), sender, FolderEvents::default()).unwrap();
        fs::write(scratch.0.join(".venv/library.py"), "").unwrap();
        fs::write(scratch.0.join("shop.log"), "").unwrap();
        for step in ["a", "b", "c"] {
            fs::write(scratch.0.join("shop/app.py"), step).unwrap();
        }
        assert_eq!(changed.blocking_recv(), Some(()));
        drop(watch);
        // The thread ends, and with it the sender.
        assert_eq!(changed.blocking_recv(), None);
    }

    #[test]
    fn where_code_was_loaded_from_is_watched_and_nothing_else_there() {
        let (scratch, elsewhere) = (scratch("bin"), scratch("loaded"));
        let named = |path: &str| elsewhere.0.join(path).display().to_string();
        fs::create_dir_all(elsewhere.0.join("lib/Shop")).unwrap();
        for file in ["lib/Shop/Web.pm", "lib/Shop/notes.log", "Common.inc", "Other.pm"] {
            fs::write(named(file), "1").unwrap();
        }
        let (sender, mut changed) = tokio::sync::mpsc::channel(1);
        let events = FolderEvents::default();
        let loaded_code = events.loaded_code();
        let watch = watch(&scratch.0, Patterns::default(), sender, events).unwrap();
        loaded_code.add(&[named("lib"), named("Common.inc"), "relative".into(), named("gone/for/good")]);
        // It has been added before an event of the folder that was watched first is noticed.
        fs::write(scratch.0.join("app.psgi"), "").unwrap();
        assert_eq!(changed.blocking_recv(), Some(()));
        for file in ["lib/Shop/Web.pm", "Common.inc"] {
            fs::write(named("Other.pm"), "2").unwrap();
            fs::write(named("lib/Shop/notes.log"), "2").unwrap();
            fs::write(named(file), "2").unwrap();
            assert_eq!(changed.blocking_recv(), Some(()), "{file}");
        }
        fs::write(named("Other.pm"), "3").unwrap();
        fs::write(named("lib/Shop/notes.log"), "3").unwrap();
        drop(watch);
        assert_eq!(changed.blocking_recv(), None);
    }

    #[test]
    fn a_new_folder_is_watched_too() {
        let scratch = scratch("new");
        let (sender, mut changed) = tokio::sync::mpsc::channel(1);
        let _watch = watch(&scratch.0, Patterns::default(), sender, FolderEvents::default()).unwrap();
        fs::create_dir_all(scratch.0.join("views/deep")).unwrap();
        fs::write(scratch.0.join("views/deep/first.py"), "").unwrap();
        assert_eq!(changed.blocking_recv(), Some(()));
        fs::write(scratch.0.join("views/page.py"), "").unwrap();
        assert_eq!(changed.blocking_recv(), Some(()));
    }
}
