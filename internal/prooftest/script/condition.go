package script

import (
	"github.com/oribi-db/oribi"
)

// Conditions among the operations of a write batch.
const (
	OpIf       oribi.Op = 100 + iota // the row exists and passes all tests
	OpIfAbsent                       // the row does not exist
)

// kindName returns the name of an operation or a condition in scripts.
func kindName(a oribi.Op) string {
	switch a {
	case OpIf:
		return "if"
	case OpIfAbsent:
		return "ifabsent"
	}
	return a.String()
}

// Condition reports whether op is a condition and not an operation.
func (op *Op) Condition() bool { return op.Ask == OpIf || op.Ask == OpIfAbsent }
