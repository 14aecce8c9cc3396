// Package kudurow converts between rows and the bytes that Kudu's servers and clients exchange:
// schemas, partition keys, row operations, columnar answers of scans, predicates, and checksums. It
// knows neither connections nor calls.
//
//   - [Check] says what of a schema Kudu cannot hold; [WireSchema] and [Projection] are schemas as
//     requests have them.
//   - A [Partitioner] computes the partition key of a row, and of all rows of a batch.
//   - An [Encoder] appends row operations to [Rows], from cells or from the columns of a batch,
//     without an allocation for each row. It checks the cells first: servers store most wrong values
//     as they are, for which no reader has a meaning.
//   - A [Decoder] makes batches of the columns of answers, whose bytes they share where they are aligned.
//   - [Predicates] translates tests of columns, [Checksum] computes the sum that servers compute.
//
// Values of Partitioner, Encoder, and Source are immutable and safe for concurrent use.
//
// Source: kudurpc spec §5, 6, 8.1, 10.4, 11, and 13.
package kudurow
