//! A statement as a value: its text and its parameters.

use std::sync::Arc;

use parkade_sql::{Int8, Parameter, Query, RowFormat, Shape};

#[derive(Debug)]
pub struct StoreStatement {
    text: &'static Arc<str>,
    parameters: Vec<Parameter>,
}

impl StoreStatement {
    pub fn new(text: &'static Arc<str>, parameters: Vec<Parameter>) -> Self {
        Self { text, parameters }
    }

    /// For the driver: rows are returned as JSON.
    pub fn query(self) -> Query {
        let form = RowFormat { shape: Shape::Rows, int8: Int8::Number, bytes_max: None };
        Query { text: Arc::clone(self.text), commented: None, parameters: self.parameters, form }
    }
}
