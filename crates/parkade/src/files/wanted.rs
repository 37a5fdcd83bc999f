//! Which file a request waits for.

use std::path::Path;
use std::sync::Arc;

use parkade_files::{Asked, FileLocation, LocationRules};
use parkade_wire::{FilesOf, WaitRequest};

/// Which file, as the application says it: the same for all requests of a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The application's own word: any file.
    Path(Arc<Path>),
    /// A file of a folder, which the path of a request names.
    Folder(Arc<FilesOf>),
}

/// The file that is one request's answer, and what its client said of it.
#[derive(Debug)]
pub struct WantedFile {
    pub source: Source,
    /// For a folder: the path of a request, as sent.
    pub path: Box<str>,
    pub asked: Asked,
}

impl Source {
    /// `None`: it is another kind of wait.
    pub fn of(wait: &WaitRequest) -> Option<Self> {
        match wait {
            WaitRequest::File { path } => Some(Self::Path(Path::new(path).into())),
            WaitRequest::Files(folder) => Some(Self::Folder(Arc::new((**folder).clone()))),
            _ => None,
        }
    }

    /// `path`: that of the request that waits, if it is still known.
    pub fn wanted(&self, path: Option<&str>, asked: Asked) -> WantedFile {
        let path = match self {
            Self::Path(_) => None,
            Self::Folder(folder) => folder.path.as_deref().or(path),
        };
        WantedFile { source: self.clone(), path: path.unwrap_or_default().into(), asked }
    }
}

impl WantedFile {
    /// Where in the folder it is. `None`: nowhere.
    pub fn location(&self, folder: &FilesOf) -> Option<FileLocation> {
        let depth = usize::try_from(folder.depth).ok()?;
        FileLocation::of(&self.path, LocationRules { depth, with_hidden: folder.hidden })
    }
}
