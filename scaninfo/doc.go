// Package scaninfo contains the types with which a scan, a count, or an aggregate describes itself:
// what it read, what it skipped, and how it tested its predicates. Package oribi has aliases of all
// of them; its option Explain and Scan.Explain return an Explanation.
package scaninfo
