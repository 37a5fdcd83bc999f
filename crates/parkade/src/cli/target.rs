//! The application: converts what was typed into what workers are given.

use std::path::Path;

use crate::language::Language;

/// Where an application is looked for if nothing is given, before the other usual files of the languages.
pub const USUAL_FILE: &str = "app.py";
/// The usual files, for people.
const USUAL_FILES: &str = "app.py, manage.py or app.psgi";

/// `here`: the folder in which the application is loaded.
pub fn resolve(typed: &str, here: &Path) -> Result<String, String> {
    // Whoever enters a folder that is none says so.
    if typed == USUAL_FILE && here.is_dir() && !here.join(typed).exists() {
        return match usual_file(Path::new("."), here) {
            Some(file) => Ok(file),
            None => Err(format!(
                "there is no {USUAL_FILES} in this folder: name the application, as \
                 `parkade serve path/to/file.py` or `parkade serve module:app`"
            )),
        };
    }
    if let Some(folder) = folder(typed, here) {
        return usual_file(Path::new(folder), here).ok_or_else(|| {
            format!(
                "{typed} is a folder without {USUAL_FILES}: name the file, as \
                 `parkade serve path/to/file.py`"
            )
        });
    }
    match dotted_name(typed, here) {
        Some((module, name)) => Err(format!(
            "{typed} is not a module: did you mean `{module}:{name}`? A colon separates a module from its application"
        )),
        None => Ok(typed.into()),
    }
}

/// What a folder is served by.
fn usual_file(folder: &Path, here: &Path) -> Option<String> {
    let mut files = Language::all().flat_map(|facts| facts.usual_files).map(|name| folder.join(name));
    let file = files.find(|file| here.join(file).exists())?;
    Some(file.strip_prefix(".").unwrap_or(&file).display().to_string())
}

/// The folder of the application, if the text names one; a package is not.
fn folder<'a>(typed: &'a str, here: &Path) -> Option<&'a str> {
    let path = here.join(typed);
    let is_package = path.join("__init__.py").exists() && !typed.contains('/');
    let has_file = usual_file(Path::new(typed), here).is_some();
    (path.is_dir() && !is_package && (typed.contains('/') || typed.starts_with('.') || has_file)).then_some(typed)
}

/// `ok.app`, if there is a module `ok` that is not a package with a module `app`.
fn dotted_name<'a>(typed: &'a str, here: &Path) -> Option<(&'a str, &'a str)> {
    if Language::of_file(Path::new(typed)).is_some() || typed.contains([':', '/']) {
        return None;
    }
    let (module, name) = typed.rsplit_once('.')?;
    let path = here.join(module.replace('.', "/"));
    let is_module = path.with_extension("py").is_file() || path.join("__init__.py").is_file();
    let has_submodule = path.join(name).exists() || path.join(name).with_extension("py").exists();
    (is_module && !has_submodule).then_some((module, name))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_was_typed_becomes_a_target_or_an_advice() {
        let here = std::env::temp_dir().join(format!("parkade-target-{}", std::process::id()));
        for file in [
            "ok.py",
            "sub/app.py",
            "empty/x.py",
            "package/__init__.py",
            "package/web.py",
            "package/app.py",
            "site/manage.py",
            "perl/app.psgi",
        ] {
            let path = here.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let resolved = |typed| resolve(typed, &here);
        for typed in
            ["ok.py", "ok", "ok:app", "other", "package.web", "package.web:app", "package", "/nope/x.py", "a.b"]
        {
            assert_eq!(resolved(typed), Ok(typed.into()));
        }
        assert_eq!(resolved("sub"), Ok("sub/app.py".into()));
        assert_eq!(resolved("./sub/"), Ok("sub/app.py".into()));
        assert_eq!(resolved("site"), Ok("site/manage.py".into()));
        assert_eq!(resolved("perl"), Ok("perl/app.psgi".into()));
        assert_eq!(resolved("site/manage.py"), Ok("site/manage.py".into()));
        assert_eq!(resolve("app.py", &here.join("nosuch")), Ok("app.py".into()));
        assert!(resolved("empty/").unwrap_err().contains("is a folder without app.py"));
        assert!(resolved("ok.app").unwrap_err().contains("did you mean `ok:app`?"));
        assert!(resolved("package.web.shop").unwrap_err().contains("did you mean `package.web:shop`?"));
        for typed in ["app.py", "."] {
            assert!(resolved(typed).unwrap_err().contains("app.py"), "{typed}");
        }
        let usual: Vec<&str> = Language::all().flat_map(|facts| facts.usual_files).copied().collect();
        assert!(usual.iter().all(|file| USUAL_FILES.contains(file)), "all of {usual:?} are named");
        fs::write(here.join("app.psgi"), "").unwrap();
        assert_eq!(resolved("app.py"), Ok("app.psgi".into()));
        fs::write(here.join("manage.py"), "").unwrap();
        for typed in ["app.py", ".", "./"] {
            assert_eq!(resolved(typed), Ok("manage.py".into()), "{typed}");
        }
        fs::write(here.join("app.py"), "").unwrap();
        for typed in ["app.py", ".", "./"] {
            assert_eq!(resolved(typed), Ok("app.py".into()), "{typed}");
        }
        fs::remove_dir_all(here).unwrap();
    }
}
