// Package hfile reads and writes HFiles: sorted files of keys and values, as Apache HBase stores
// its cells and Apache Hudi its metadata table.
//
// Source: hfile spec.
package hfile
