//! The metrics of the process of the core, under the names that every client library of Prometheus uses.

use super::{MetricType, Page};
use crate::admin::report::Report;
use crate::platform::ProcessUse;

pub(super) fn write(page: &mut Page, report: &Report, used: &ProcessUse) {
    let (counter, gauge) = (MetricType::Counter, MetricType::Gauge);
    page.process("cpu_seconds_total", counter, "CPU time of the core, in seconds.", used.cpu.as_secs_f64());
    page.process("start_time_seconds", gauge, "When the core started, in seconds since 1970.", report.started);
    let bytes = [
        ("resident_memory_bytes", "Resident memory of the core.", used.resident_bytes),
        ("virtual_memory_bytes", "Virtual memory of the core.", used.virtual_bytes),
        ("open_fds", "File descriptors that the core has open.", used.open_files),
        ("max_fds", "The most file descriptors that the core may have open.", used.open_files_max),
    ];
    for (name, help, value) in bytes {
        if let Some(value) = value {
            page.process(name, gauge, help, value);
        }
    }
}
