// Package grouping computes aggregates over groups of the rows of a scan: it binds aggregates and
// keys to a schema, gives each goroutine an engine of package aggregate, and makes the values of
// the result from their figures. Not safe for concurrent use.
package grouping
