package script

import (
	"github.com/oribi-db/oribi"
)

// Conditions among the operations of a batch.
const (
	OpIf       oribi.Op = 100 + iota // there is a row, and it passes the tests
	OpIfAbsent                       // there is none
)

// askName is an operation's name in scripts.
func askName(a oribi.Op) string {
	switch a {
	case OpIf:
		return "if"
	case OpIfAbsent:
		return "ifabsent"
	}
	return a.String()
}

// Condition reports whether op is a condition.
func (op *Op) Condition() bool { return op.Ask == OpIf || op.Ask == OpIfAbsent }
