//! Which file a request waits for.

use std::any::Any;
use std::path::Path;
use std::sync::Arc;

use parkade_files::{Asked, FileLocation, LocationRules};
use parkade_wire::{FilePart, FilesOf, Response};

/// Which file, as the application says it: the same for all requests of a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The application's own word: any file.
    Path(Arc<Path>),
    /// A file of a folder, which the path of a request names.
    Folder(Arc<FilesOf>),
    /// A part of a file: the body of a response of the application.
    Part(Arc<FilePart>),
}

/// The file that is one request's answer, and what its client said of it.
#[derive(Debug)]
pub struct WantedFile {
    pub source: Source,
    /// For a folder: the path of a request, as sent.
    pub path: Box<str>,
    /// What follows `?` in its target, as sent.
    pub query: Box<str>,
    pub asked: Asked,
    /// For a part.
    pub given: Option<Box<GivenResponse>>,
}

/// The application's response, whose body is a part of a file.
#[derive(Debug)]
pub struct GivenResponse {
    pub response: Response,
    _until_open: Option<Box<dyn Any + Send>>,
}

impl GivenResponse {
    /// `until_open` is dropped when the file is open, or not needed: the application keeps the file until then.
    pub fn new(response: Response, until_open: Option<Box<dyn Any + Send>>) -> Self {
        Self { response, _until_open: until_open }
    }
}

impl Source {
    /// `target`: the path and the query of the request that waits, if they are still known.
    pub fn wanted(&self, target: Option<(&str, &str)>, asked: Asked) -> WantedFile {
        let (path, query) = match self {
            Self::Path(_) | Self::Part(_) => ("", ""),
            Self::Folder(folder) => {
                let (path, query) = target.unwrap_or_default();
                (folder.path.as_deref().unwrap_or(path), query)
            }
        };
        WantedFile { source: self.clone(), path: path.into(), query: query.into(), asked, given: None }
    }
}

impl WantedFile {
    /// Where in the folder it is. `None`: nowhere.
    pub fn location(&self, folder: &FilesOf) -> Option<FileLocation> {
        let depth = usize::try_from(folder.depth).ok()?;
        FileLocation::of(&self.path, LocationRules { depth, with_hidden: folder.hidden })
    }
}
