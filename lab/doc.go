// Package lab compares compaction policies by experiments.
//
// An experiment runs a workload, which is a sequence of inserts, updates and deletes, against a
// table whose merges a policy chooses. A Spec lists workloads and policies; Run runs each workload
// with each policy and writes its measurements to a directory:
//
//	spec, err := lab.ParseSpec(text)   // JSON
//	if err != nil { … }
//	err = lab.Run(ctx, spec, "out")    // report.html, runs.csv, events.jsonl, spec.json
//
// There are two engines. The engine "simulated" has no rows: it knows the bounds and sizes of
// rowsets, and computes what flushes and merges would write. The engine "real" runs the
// same operations on a store in a temporary directory. Both are driven by the same loop:
//
//	operations … → flush, when FlushBytes have been written
//	             → old versions that the history need not keep are removed
//	             → merges, until the policy picks nothing or RewriteRatio is used up
//	             → a delta compaction, if redos are large or many
//	             → a sample of the measures
//
// A simulated run depends on its spec only: two runs write the same runs.csv, byte for byte,
// whatever the number of processors. A real run does not: a store's files differ by some bytes in
// size.
//
// The functions of this package are safe for concurrent use.
package lab
