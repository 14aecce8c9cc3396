//go:build invariants

package invariant

// Enabled reports whether the program was built with the tag "invariants".
const Enabled = true
