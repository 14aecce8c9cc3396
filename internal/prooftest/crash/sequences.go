package crash

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/prooftest/history"
	"github.com/oribi-db/oribi/internal/prooftest/model"
	"github.com/oribi-db/oribi/internal/prooftest/script"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/crashfs"
)

// Sequences runs all sequences of Length operations on a table with three keys. It simulates a
// crash at every disk change of the last operation; crashes in the operations before it belong to
// shorter sequences.
//
// The three keys cover all cases: a row on disk with later changes, a row in memory, and a deleted
// row. Any other table is one of these with the keys renamed, or is reached by one more operation.
// Each sequence runs once with synced and once with unsynced batches.
type Sequences struct {
	Length int
	Limit  int // maximum number of states per disk change; 0 = all

	base  *vfs.Mem // a closed store
	model *model.Model
	o     script.Settings
}

const onlyTable = "t"

// NewSequences creates the store that all sequences start from.
func NewSequences(length, limit int) (*Sequences, error) {
	q := &Sequences{Length: length, Limit: limit, o: script.Settings{Seed: 1, NoCrashes: true}}
	disk := crashfs.New(vfs.NewMem())
	r := history.NewCrashRunner(q.o, disk)
	columns := []schema.Column{{Name: "k", Type: schema.Int32}, {Name: "v", Type: schema.Int64, Nullable: true},
		{Name: "w", Type: schema.String, Nullable: true}}
	s, err := schema.New(columns, 1)
	if err != nil {
		return nil, err
	}
	for _, st := range []script.Step{{Kind: script.Create, Table: onlyTable, Schema: s},
		writeKey(oribi.OpInsert, 0, 1, true), writeKey(oribi.OpInsert, 2, 1, true),
		{Kind: script.Flush, Table: onlyTable}, writeKey(oribi.OpInsert, 1, 2, true),
		writeKey(oribi.OpUpdate, 0, 2, true), {Kind: script.Deltas, Table: onlyTable},
		writeKey(oribi.OpUpdate, 0, 3, true), writeKey(oribi.OpDelete, 2, 0, true)} {
		r.Do(st)
	}
	r.Close()
	q.base, q.model = disk.Read(), r.Model
	return q, r.Err
}

// writeKey returns a step with a write batch of one operation. It sets both value columns from
// value.
func writeKey(ask oribi.Op, key, value byte, sync bool) script.Step {
	op := script.Op{Ask: ask, Table: onlyTable, Cells: make([][]byte, 3),
		Set: []bool{true, ask != oribi.OpDelete, ask != oribi.OpDelete}}
	op.Cells[0] = binary.LittleEndian.AppendUint32(nil, uint32(key))
	if ask != oribi.OpDelete {
		op.Cells[1], op.Cells[2] = binary.LittleEndian.AppendUint64(nil, uint64(value)), []byte{'a' + value}
	}
	return script.Step{Kind: script.Write, Ops: []script.Op{op}, Sync: sync, As: history.AsCells}
}

// steps returns the possible operations of a sequence. value distinguishes their writes from those
// of other steps.
func (q *Sequences) steps(value byte, sync bool) (out []script.Step) {
	for key := range byte(3) {
		for _, ask := range []oribi.Op{oribi.OpInsert, oribi.OpUpsert, oribi.OpUpdate, oribi.OpDelete} {
			out = append(out, writeKey(ask, key, value, sync))
		}
	}
	for _, kind := range []script.Kind{script.Flush, script.Deltas, script.Compact, script.Minor, script.Major,
		script.Recompress, script.UndoGC, script.Reopen} {
		out = append(out, script.Step{Kind: kind, Table: onlyTable, Mask: 1 << 1})
	}
	set := writeKey(oribi.OpUpdate, 0, value, sync)
	set.Ops[0].Cells[0], set.Ops[0].Set[0] = nil, false
	some := script.Read{Limit: -1, From: writeKey(oribi.OpDelete, 1, 0, sync).Ops[0].Cells[:1]}
	out = append(out, script.Step{Kind: script.UpdateWhere, Ops: set.Ops, Sync: sync, Size: 1},
		script.Step{Kind: script.DeleteWhere, Read: some, Sync: sync},
		script.Step{Kind: script.Truncate, Sync: sync},
		script.Step{Kind: script.Restore, Read: script.Read{AsOf: true, At: q.model.Commits[1].TS}, Sync: true},
		script.Step{Kind: script.Rename, Name: string('t' + rune(value))})
	added := schema.Column{Name: string('a' + rune(value)), Type: schema.Int64, Nullable: true}
	in := writeKey(oribi.OpInsert, 3+value, value, true)
	return append(out, script.Step{Kind: script.Alter, Table: onlyTable,
		Alter: []script.Alteration{{What: "add", Add: added}}},
		script.Step{Kind: script.Ingest, Table: onlyTable, Ops: in.Ops, Size: 1})
}

// Count returns the number of sequences, including those that the table refuses.
func (q *Sequences) Count() int {
	n := 2
	for range q.Length {
		n *= len(q.steps(0, false))
	}
	return n
}

// Run runs the i-th sequence. It skips one with an operation that the table refuses.
func (q *Sequences) Run(i int) (*script.Script, StateCounts, error) {
	sync := i%2 == 0
	i /= 2
	var steps []script.Step
	for at := range q.Length {
		all := q.steps(byte(5+at), sync)
		steps = append(steps, all[i%len(all)])
		i /= len(all)
	}
	slices.Reverse(steps) // adjacent sequences share a prefix
	disk := crashfs.New(q.base)
	r := (&history.Crashed{Model: q.model.Clone(), Settings: q.o, Wall: history.NewWall()}).Runner()
	if r.Err = r.OpenOn(disk); r.Err != nil {
		return r.Script, StateCounts{}, r.Err
	}
	x := newProbing(disk, r)
	x.limit = q.Limit
	for at, st := range steps {
		fit(&st, r.Model.Tables[r.Model.Names()[0]])
		if st.Kind == script.Write && r.Model.Resolve(st.Ops, false).Refused >= 0 {
			return r.Script, x.counted(), errors.Join(r.Err, r.Store.Close())
		}
		if at == len(steps)-1 {
			x.watch(x.check)
		}
		if !x.do(st) {
			break
		}
	}
	disk.OnOperation(nil)
	if err := x.last(); err != nil {
		return r.Script, x.counted(), fmt.Errorf("after the last step: %w", err)
	}
	return x.end()
}

// fit gives a step the table's present name, and its operations as many cells as the table has
// columns.
func fit(st *script.Step, t *model.Table) {
	st.Table = t.Name
	for i := range st.Ops {
		op := &st.Ops[i]
		op.Table = t.Name
		for len(op.Cells) < len(t.Schema.Columns) {
			op.Cells, op.Set = append(op.Cells, nil), append(op.Set, false)
		}
	}
}

// last opens the states after the last step.
func (x *probing) last() error {
	at := x.disk.Point()
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.err != nil || x.r.Err != nil {
		return nil // end reports it
	}
	return x.crash(at)
}
