//! Parquet: the rows of the CSV files with their types, for data frames and databases.
//!
//! One row group, uncompressed, and no time in it: the same report is the same bytes.

use std::sync::Arc;

use ::parquet::basic::{LogicalType, Repetition, Type as Physical};
use ::parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use ::parquet::schema::types::Type;

use super::columns::{self, DataColumn, ValueReader};
use super::{RenderError, Report, asked_items};

/// The name of the writer in a file.
const WRITER: &str = concat!("proctor version ", env!("CARGO_PKG_VERSION"));

/// Writes the tables of cells and of probe items: the same columns as CSV.
///
/// Values that were not measured are null. Texts are written as recorded: programs that read
/// Parquet do not execute them.
pub(super) fn render(report: &Report) -> Result<[Vec<u8>; 2], RenderError> {
    let cells = table("cells", &columns::cells(), &report.cells).map_err(RenderError::Parquet)?;
    let items = table("items", &columns::items(), &asked_items(&report.records));
    Ok([cells, items.map_err(RenderError::Parquet)?])
}

fn table<T>(name: &str, columns: &[DataColumn<T>], rows: &[T]) -> Result<Vec<u8>, ParquetError> {
    let fields = columns.iter().map(|column| field(column).map(Arc::new));
    let schema =
        Type::group_type_builder(name).with_fields(fields.collect::<Result<_, _>>()?).build()?;
    let properties = WriterProperties::builder().set_created_by(WRITER.to_owned()).build();
    let mut file = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties))?;
    let mut group = file.next_row_group()?;
    let mut values = columns.iter().map(|column| &column.read);
    while let Some(mut writer) = group.next_column()? {
        // The schema has as many columns as the table: they end together.
        match values.next() {
            Some(ValueReader::Text(read)) => {
                let texts = rows.iter().map(read);
                let bytes = texts.map(|text| Some(ByteArray::from(text?.into_bytes())));
                put::<ByteArrayType>(&mut writer, bytes)?;
            }
            Some(ValueReader::Count(read)) => put::<Int64Type>(&mut writer, rows.iter().map(read))?,
            Some(ValueReader::Number(read)) => {
                put::<DoubleType>(&mut writer, rows.iter().map(read))?;
            }
            None => {}
        }
        writer.close()?;
    }
    group.close()?;
    file.into_inner()
}

fn field<T>(column: &DataColumn<T>) -> Result<Type, ParquetError> {
    let (physical, logical) = match column.read {
        ValueReader::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        ValueReader::Count(_) => (Physical::INT64, None),
        ValueReader::Number(_) => (Physical::DOUBLE, None),
    };
    Type::primitive_type_builder(column.name, physical)
        .with_logical_type(logical)
        .with_repetition(Repetition::OPTIONAL)
        .build()
}

/// Writes a column: the values that are there, and for each row whether it has one.
fn put<D: DataType>(
    writer: &mut SerializedColumnWriter<'_>,
    rows: impl Iterator<Item = Option<D::T>>,
) -> Result<(), ParquetError> {
    let rows: Vec<Option<D::T>> = rows.collect();
    let levels: Vec<i16> = rows.iter().map(|row| i16::from(row.is_some())).collect();
    let values: Vec<D::T> = rows.into_iter().flatten().collect();
    writer.typed::<D>().write_batch(&values, Some(&levels), None)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use ::parquet::file::reader::{FileReader, SerializedFileReader};
    use ::parquet::record::Field;

    use super::*;

    struct Row(&'static str, Option<i64>, Option<f64>);

    fn columns() -> Vec<DataColumn<Row>> {
        vec![
            DataColumn {
                name: "word",
                read: ValueReader::Text(Box::new(|row: &Row| Some(row.0.to_owned()))),
            },
            DataColumn { name: "count", read: ValueReader::Count(Box::new(|row: &Row| row.1)) },
            DataColumn { name: "share", read: ValueReader::Number(Box::new(|row: &Row| row.2)) },
        ]
    }

    #[track_caller]
    fn check(rows: &[Row], expected: &[Vec<Field>]) {
        let bytes = table("rows", &columns(), rows).unwrap();
        assert_eq!(bytes, table("rows", &columns(), rows).unwrap());
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        let found: Vec<Vec<Field>> = reader
            .get_row_iter(None)
            .unwrap()
            .map(|row| row.unwrap().into_columns().into_iter().map(|it| it.1).collect())
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn what_is_written_is_read_back_with_its_type_and_what_is_missing_is_null() {
        check(&[], &[]);
        let word = |text: &str| Field::Str(text.to_owned());
        check(
            &[
                Row("=1+1\n\u{1b}[2J", Some(7), None),
                Row("", None, Some(-0.25)),
                Row("ä", Some(0), Some(1.0)),
            ],
            &[
                vec![word("=1+1\n\u{1b}[2J"), Field::Long(7), Field::Null],
                vec![word(""), Field::Null, Field::Double(-0.25)],
                vec![word("ä"), Field::Long(0), Field::Double(1.0)],
            ],
        );
    }
}
