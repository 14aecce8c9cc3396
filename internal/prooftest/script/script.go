// Package script represents a history of operations on a store, as settings and a list of
// self-contained steps. String writes it as text and Parse reads it back. A failing history can
// therefore be saved, run again, and shortened by removing steps.
package script

import (
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/schema"
)

// The text of a script has one line for the settings and one for each step. Indented lines after a
// step list the columns of a table, alterations, or operations of a write batch. A cell is an x and
// its bytes in hex, "null", or "-" if it is not set. A list of cells or columns is separated by
// commas; "*" is a nil list.
//
//	settings seed=7 hybrid=false history=0s flush=65536 rowset=8192 segment=0 memory=0 policy= background=false shuffled=false keys=300 batch=1
//	create t0 keys=1
//	  column a type=INT32 encoding=0 compression=1 block=512 precision=0 scale=0 length=0 null=false immutable=false default=-
//	alter t0
//	  add b type=INT32 …
//	  rename 0 c
//	  default 1 x07000000
//	  drop 1
//	write sync=true as=cells partial=false
//	  ifabsent t0 x07000000
//	  insert t0 x07000000
//	write t0 sync=true as=cells partial=false during=flush mask=0
//	  insert t0 x08000000
//	get t0 asof=false at=0 columns=* key=x07000000 …
//	kill

// String returns the text of the script.
func (s *Script) String() string {
	var b strings.Builder
	o := &s.Settings
	fmt.Fprintf(&b, "settings seed=%d hybrid=%v history=%v flush=%d rowset=%d segment=%d memory=%d policy=%s "+
		"background=%v shuffled=%v keys=%d batch=%d eager=%v scarce=%v\n",
		o.Seed, o.Hybrid, o.History, o.FlushBytes, o.RowSetBytes, o.Segment, o.Memory, o.Policy, o.Background,
		o.Shuffled, o.Keys, o.Batch, o.Eager, o.Scarce)
	for i := range s.Steps {
		s.Steps[i].print(&b)
	}
	return b.String()
}

func (st *Step) print(b *strings.Builder) {
	b.WriteString(string(st.Kind))
	if st.Table != "" {
		b.WriteString(" " + st.Table)
	}
	if st.InTx() {
		fmt.Fprintf(b, " tx=%d", st.Tx)
	}
	switch st.Kind {
	case TxGet, TxScan:
		fmt.Fprintf(b, " stop=%d", st.Stop)
		st.Read.print(b)
	case TxGetBy:
		fmt.Fprintf(b, " name=%s", st.Name)
		st.Read.print(b)
	case TxDelete, TxCursor:
		st.Read.print(b)
	case TxMove:
		fmt.Fprintf(b, " number=%d", st.Number)
		for _, m := range st.Moves {
			fmt.Fprintf(b, " move=%s:%s", m.Where, CellsText(m.Key, nil, ","))
		}
	case RollbackTo:
		fmt.Fprintf(b, " number=%d", st.Number)
	case Begin:
		fmt.Fprintf(b, " exclusive=%v sync=%v", st.Exclusive, st.Sync)
	case TxCommit:
		fmt.Fprintf(b, " sync=%v", st.Sync)
	case Create:
		fmt.Fprintf(b, " keys=%d rowfile=%v", st.Schema.Keys, st.RowFile)
		if st.Expires > 0 {
			fmt.Fprintf(b, " expires=%d time=%v", st.Expires, st.Time)
		}
		for i := range st.Schema.Columns {
			printColumn(b, "column", &st.Schema.Columns[i])
		}
	case Write:
		fmt.Fprintf(b, " sync=%v as=%s partial=%v", st.Sync, st.As, st.Partial)
		st.printDuring(b)
	case Rename:
		fmt.Fprintf(b, " name=%s", st.Name)
	case Ingest:
		fmt.Fprintf(b, " size=%d mask=%d", st.Size, st.Mask)
	case UpdateWhere, DeleteWhere, DeleteRange, Truncate, Restore:
		fmt.Fprintf(b, " sync=%v size=%d stop=%d", st.Sync, st.Size, st.Stop)
		st.printDuring(b)
		st.Read.print(b)
	case Get, Find, Count, Check, Hold, Versions:
		st.Read.print(b)
	case Diff:
		st.Read.print(b)
		fmt.Fprintf(b, " until=%d", uint64(st.Read.Until))
	case Many:
		st.Read.print(b)
		for _, key := range st.Keys {
			fmt.Fprintf(b, " many=%s", CellsText(key, nil, ","))
		}
	case Merge, Major, Tear, Maintain:
		fmt.Fprintf(b, " mask=%d", st.Mask)
	case Tick:
		fmt.Fprintf(b, " time=%v", st.Time)
	}
	for i := range st.Alter {
		st.Alter[i].print(b)
	}
	for i := range st.Ops {
		op := &st.Ops[i]
		fmt.Fprintf(b, "\n  %s %s %s", kindName(op.Ask), op.Table, CellsText(op.Cells, op.Set, " "))
		printTests(b, op.Tests)
		if op.Operands != nil {
			fmt.Fprintf(b, " operands=%s", operandsText(op.Operands))
		}
	}
	b.WriteByte('\n')
}

func (st *Step) printDuring(b *strings.Builder) {
	if st.During != "" {
		fmt.Fprintf(b, " during=%s mask=%d", st.During, st.Mask)
	}
}

func printColumn(b *strings.Builder, word string, c *schema.Column) {
	fmt.Fprintf(b, "\n  %s %s type=%v array=%v encoding=%d compression=%d block=%d precision=%d scale=%d length=%d "+
		"null=%v immutable=%v default=%s",
		word, c.Name, c.Stored(), c.Type == schema.Array, c.Encoding, c.Compression, c.BlockBytes, c.Precision, c.Scale,
		c.Length, c.Nullable, c.Immutable, cellText(c.Default, c.Default != nil))
}

func (r *Read) print(b *strings.Builder) {
	fmt.Fprintf(b, " asof=%v at=%d columns=%s key=%s from=%s to=%s limit=%d any=%v workers=%d desc=%v values=%v",
		r.AsOf, uint64(r.At), columnsText(r.Columns),
		CellsText(r.Key, nil, ","), CellsText(r.From, nil, ","), CellsText(r.To, nil, ","), r.Limit,
		r.Any, r.Workers, r.Desc, r.Values)
	printTests(b, r.Tests)
}

func printTests(b *strings.Builder, tests []Test) {
	for _, t := range tests {
		fmt.Fprintf(b, " test=%d:%d:%s", t.Column, t.Op, CellsText(t.Values, nil, ","))
	}
}

func columnsText(columns []int) string {
	if columns == nil {
		return "*"
	}
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(columns), " ", ","), "[]")
}

// CellsText returns the text of cells, with "-" for a cell that is not set. If set is nil, all are
// set.
func CellsText(cells [][]byte, set []bool, separator string) string {
	if cells == nil {
		return "*"
	}
	texts := make([]string, len(cells))
	for i, c := range cells {
		texts[i] = cellText(c, set == nil || set[i])
	}
	return strings.Join(texts, separator)
}

func cellText(cell []byte, set bool) string {
	switch {
	case !set:
		return "-"
	case cell == nil:
		return "null"
	}
	return "x" + hex.EncodeToString(cell)
}

// opKinds maps the names of operations and conditions in scripts to their kinds.
var opKinds = func() map[string]oribi.Op {
	m := map[string]oribi.Op{kindName(OpIf): OpIf, kindName(OpIfAbsent): OpIfAbsent}
	for _, a := range []oribi.Op{oribi.OpInsert, oribi.OpUpsert, oribi.OpUpdate, oribi.OpDelete,
		oribi.OpInsertIgnore, oribi.OpUpsertIgnore, oribi.OpUpdateIgnore, oribi.OpDeleteIgnore} {
		m[a.String()] = a
	}
	return m
}()
