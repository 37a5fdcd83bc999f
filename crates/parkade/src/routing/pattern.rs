//! The path of a route: segments, any of which may be a parameter (protocol, section 2).

use super::RouteError;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Segment {
    Fixed(Box<str>),
    Parameter(Converter),
}

/// What a parameter accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Converter {
    Text,
    Int,
    Float,
    Uuid,
    /// The whole rest, including slashes.
    Rest,
}

impl Converter {
    pub(super) fn accepts(self, text: &str) -> bool {
        match self {
            // One that began with a slash would lead anywhere if it was joined to a folder.
            Self::Text | Self::Rest => !text.is_empty() && !text.starts_with(['/', '\\']),
            Self::Int => is_digits(unsigned(text)) && unsigned(text).len() <= 18,
            Self::Float => match unsigned(text).split_once('.') {
                Some((whole, fraction)) => is_digits(whole) && is_digits(fraction),
                None => is_digits(unsigned(text)),
            },
            Self::Uuid => is_uuid(text),
        }
    }
}

/// `/hola/{name}` as segments.
pub(super) fn parse(path: &str) -> Result<Vec<Segment>, RouteError> {
    let malformed = || RouteError::Path(path.to_owned());
    let rest = path.strip_prefix('/').ok_or_else(malformed)?;
    let mut names: Vec<&str> = Vec::new();
    let mut segments = Vec::new();
    for text in rest.split('/') {
        if segments.last() == Some(&Segment::Parameter(Converter::Rest)) {
            return Err(malformed());
        }
        let Some(parameter) = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')) else {
            if text.contains(['{', '}']) {
                return Err(malformed());
            }
            segments.push(Segment::Fixed(text.into()));
            continue;
        };
        let (name, converter) = parameter_of(parameter).ok_or_else(malformed)?;
        if names.contains(&name) {
            return Err(malformed());
        }
        names.push(name);
        segments.push(Segment::Parameter(converter));
    }
    Ok(segments)
}

/// `{rest:path}` and `{name:rest}` are the same.
fn parameter_of(text: &str) -> Option<(&str, Converter)> {
    let (name, converter) = match text.split_once(':') {
        None => (text, Converter::Text),
        Some((name, "int")) => (name, Converter::Int),
        Some((name, "float")) => (name, Converter::Float),
        Some((name, "uuid")) => (name, Converter::Uuid),
        Some((name, "path" | "rest")) => (name, Converter::Rest),
        Some(_) => return None,
    };
    (!name.is_empty() && !name.contains(['{', '}'])).then_some((name, converter))
}

fn unsigned(text: &str) -> &str {
    text.strip_prefix('-').unwrap_or(text)
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_uuid(text: &str) -> bool {
    let mut groups = text.split('-');
    let fits =
        |length: usize| move |group: &str| group.len() == length && group.bytes().all(|byte| byte.is_ascii_hexdigit());
    [8, 4, 4, 4, 12].into_iter().all(|length| groups.next().is_some_and(fits(length))) && groups.next().is_none()
}
