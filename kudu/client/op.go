package client

import (
	"fmt"

	"github.com/oribi-db/oribi/internal/kudupb"
)

// Op is the kind of an operation on a row. Those whose names end in Ignore skip a row that the others
// report.
type Op uint8

// The kinds of operations.
const (
	Insert       Op = 1  // of a row whose key is absent
	Update       Op = 2  // of some columns of a row whose key is present
	Delete       Op = 3  // of a row whose key is present
	Upsert       Op = 5  // Insert, or Update of the columns that are given: others keep their values
	InsertIgnore Op = 10 // without effect if the key is present
	UpdateIgnore Op = 11 // without effect if the key is absent, and on immutable columns
	DeleteIgnore Op = 12 // without effect if the key is absent
	UpsertIgnore Op = 13 // without effect on immutable columns of a row whose key is present
)

var opNames = map[Op]string{Insert: "insert", Update: "update", Delete: "delete", Upsert: "upsert",
	InsertIgnore: "insert ignore", UpdateIgnore: "update ignore", DeleteIgnore: "delete ignore",
	UpsertIgnore: "upsert ignore"}

// String returns the name of o in lower case, such as upsert.
func (o Op) String() string {
	if name, ok := opNames[o]; ok {
		return name
	}
	return fmt.Sprintf("operation %d", uint8(o))
}

// repeatable reports whether an operation that is carried out twice has the effect and the answer of
// one.
func (o Op) repeatable() bool {
	return o == Upsert || o == UpsertIgnore || o == DeleteIgnore || o == Update || o == UpdateIgnore
}

func (o Op) wire() kudupb.RowOperationType { return kudupb.RowOperationType(o) }
