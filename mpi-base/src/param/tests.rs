//! Tests of parameters: the precedence of sources, the syntax of each kind of value,
//! and the messages about malformed values.

use super::*;
use std::ffi::OsString;
use std::time::Duration;

static LIMIT: Param<usize> = Param::new(
    "btl",
    "sm",
    "eager_limit",
    "4k",
    Level::TUNER,
    "Messages up to this size travel with their header.",
);
static BTL: Param<Selection> = Param::selection("btl", "", "The byte transfer layers to use.");
static GRACE: Param<Duration> =
    Param::new("x", "y", "grace", "200ms", Level::USER, "Time: to end.");

fn env(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
    pairs.iter().map(|(k, v)| (k.into(), v.into())).collect()
}

fn files(user: &str, system: &str) -> (tempfile::TempDir, Files) {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("home");
    let prefix = dir.path().join("prefix");
    std::fs::create_dir_all(home.join(".portcullis")).unwrap();
    std::fs::create_dir_all(prefix.join("etc")).unwrap();
    let files = Files::standard(Some(&home), Some(&prefix));
    std::fs::write(files.user.as_ref().unwrap(), user).unwrap();
    std::fs::write(files.system.as_ref().unwrap(), system).unwrap();
    (dir, files)
}

#[test]
fn each_stronger_source_hides_the_weaker_ones() {
    let (_dir, both) = files(
        "btl_sm_eager_limit = 2",
        "# weakest\nbtl_sm_eager_limit=1\n",
    );
    let system_only = Files {
        user: None,
        ..both.clone()
    };
    let set = ("PORTCULLIS_MCA_btl_sm_eager_limit", "3");
    let cases: [(Params, usize, &str); 5] = [
        (Params::default(), 4096, "default"),
        (Params::load(env(&[]), &system_only), 1, "file"),
        (Params::load(env(&[]), &both), 2, "file"),
        (Params::load(env(&[set]), &both), 3, "environment"),
        (
            Params::load(env(&[(MARKER, "x,btl_sm_eager_limit"), set]), &both),
            3,
            "command line",
        ),
    ];
    for (params, value, source) in cases {
        assert_eq!(params.get(&LIMIT), Ok(value));
        assert!(params.source(LIMIT.about()).to_string().starts_with(source));
    }
}

#[test]
fn a_malformed_value_is_named_with_its_source_and_what_was_expected() {
    let params = Params::load(
        env(&[("PORTCULLIS_MCA_btl_sm_eager_limit", "lots")]),
        &Files::default(),
    );
    assert_eq!(
        params.get(&LIMIT).unwrap_err().to_string(),
        "parameter btl_sm_eager_limit has the value \"lots\" (from environment), but a size such as 4096, 64k, 1M or 2G is expected"
    );
}

#[test]
fn a_bad_line_is_complained_about_and_the_others_count() {
    let (_dir, files) = files("nonsense\n= 3\nx_y_grace = 2s", "");
    let params = Params::load(env(&[]), &files);
    assert_eq!(params.complaints().len(), 2);
    assert!(params.complaints()[0].to_string().starts_with("line 1 of"));
    assert_eq!(params.get(&GRACE), Ok(Duration::from_secs(2)));
}

#[test]
fn sizes_take_suffixes_and_refuse_overflow() {
    assert_eq!(usize::parse("3M"), Ok(3 << 20));
    for bad in ["", "k", "-1", "99999999999T", "1é"] {
        assert!(usize::parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn times_take_units_and_refuse_what_is_no_time() {
    assert_eq!(Duration::parse("50us"), Ok(Duration::from_micros(50)));
    assert_eq!(Duration::parse("1.5"), Ok(Duration::from_millis(1500)));
    for bad in ["", "s", "-1s", "1 fortnight", "infs", "1e300h"] {
        assert!(Duration::parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn truth_is_written_in_many_ways() {
    for (text, value) in [("1", true), ("Yes", true), ("off", false), ("0", false)] {
        assert_eq!(bool::parse(text), Ok(value));
    }
    assert!(bool::parse("maybe").is_err());
}

#[test]
fn a_selection_takes_or_leaves_out() {
    let only = Selection::parse("self,sm").unwrap();
    assert!(only.allows("sm") && !only.allows("tcp"));
    let except = Selection::parse("^tcp").unwrap();
    assert!(except.allows("sm") && !except.allows("tcp"));
    assert!(Selection::parse("").unwrap().allows("anything"));
}

#[test]
fn a_caret_inside_a_selection_is_refused_in_a_sentence() {
    let error = Selection::parse("sm,^tcp").unwrap_err();
    assert!(error.to_string().contains("not the first character"));
    assert!(Selection::parse("^").is_err() && Selection::parse("a,,b").is_err());
    let params = Params::load(env(&[("PORTCULLIS_MCA_btl", "sm,^tcp")]), &Files::default());
    let sentence = params.get(&BTL).unwrap_err().to_string();
    assert!(
        sentence.contains("btl has the value \"sm,^tcp\""),
        "{sentence}"
    );
}

#[test]
fn a_component_that_is_asked_for_must_exist() {
    let known = ["self", "sm"];
    let error = Selection::parse("self,smm").unwrap().check("btl", &known);
    assert_eq!(
        error.unwrap_err().to_string(),
        "there is no btl component \"smm\"; there are self, sm"
    );
    assert!(
        Selection::parse("^smm")
            .unwrap()
            .check("btl", &known)
            .is_ok()
    );
}

#[test]
fn listings_have_the_shape_of_ompi_info() {
    let params = Params::default();
    assert_eq!(
        list(LIMIT.about(), &params, Style::Readable),
        "              MCA btl sm: parameter \"btl_sm_eager_limit\" (current value: \"4k\", data source: default, level: 4 tuner/basic, type: size_t)\n\
         \x20                         Messages up to this size travel with their header.\n"
    );
    let parsable = list(GRACE.about(), &params, Style::Parsable);
    assert!(parsable.starts_with("mca:x:y:param:x_y_grace:value:200ms\n"));
    assert!(parsable.contains(":help:\"Time: to end.\"\n"));
    assert!(list(BTL.about(), &params, Style::Parsable).starts_with("mca:btl:base:param:btl:"));
}

#[test]
fn a_parameter_is_known_by_its_full_name_only() {
    let (component, framework): (Param<usize>, Param<usize>) = (
        Param::new("btl", "sm", "eager_limit", "4k", Level::USER, ""),
        Param::new("btl", "", "", "4k", Level::USER, ""),
    );
    for about in [component.about(), framework.about()] {
        let name = about.full_name();
        assert!(about.is_called(&name), "{name}");
        for other in ["", "btl_", "btl_sm", "btl_sm_eager", "btlsm_eager_limit"] {
            assert!(!about.is_called(other), "{name} is not {other}");
        }
        assert!(!about.is_called(&format!("{name}s")));
        assert!(!about.is_called(&format!("x{name}")));
    }
}

static PLACE: Param<std::path::PathBuf> = Param::new("x", "y", "place", "", Level::USER, "A file.");

#[test]
fn the_name_of_a_file_keeps_bytes_that_are_not_utf_8() {
    use std::os::unix::ffi::OsStringExt as _;
    let name = OsString::from_vec(b"/tmp/\xe4".to_vec());
    let by_environment = [("PORTCULLIS_MCA_x_y_place".into(), name.clone())];
    let params = Params::load(by_environment, &Files::default());
    assert_eq!(params.get(&PLACE).unwrap().into_os_string(), name);
    let (_dir, files) = files("", "");
    std::fs::write(files.user.as_ref().unwrap(), b"x_y_place = /tmp/\xe4\n").unwrap();
    let params = Params::load([], &files);
    assert_eq!(params.get(&PLACE).unwrap().into_os_string(), name);
}
