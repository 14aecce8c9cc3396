package prooftest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/schema"
	"github.com/oribi-db/oribi/vfs"
	"github.com/oribi-db/oribi/vfs/crashfs"
)

// Sequences goes through all sequences of so many operations on a table of three keys, with a crash
// at every change of the disk that the last of them makes: the shorter sequences have had the
// crashes of those before.
//
// The keys are those that differ: one whose row is on disk and was changed since, one whose row is
// in memory, one whose row was deleted. Any other choice is one of these with the keys renamed, or
// lies a step further on. Each sequence is carried out with synced batches and with batches that
// are not.
type Sequences struct {
	Length int
	Limit  int // states of a change of the disk, at most; 0 = all

	base  *vfs.Mem // a closed store
	model *Model
	o     Settings
}

const onlyTable = "t"

// NewSequences makes the table.
func NewSequences(length, limit int) (*Sequences, error) {
	q := &Sequences{Length: length, Limit: limit, o: Settings{Seed: 1, NoCrashes: true}}
	disk := crashfs.New(vfs.NewMem())
	r := newCrashRunner(q.o, disk)
	columns := []schema.Column{{Name: "k", Type: schema.Int32}, {Name: "v", Type: schema.Int64, Nullable: true}, {Name: "w", Type: schema.String, Nullable: true}}
	s, err := schema.New(columns, 1)
	if err != nil {
		return nil, err
	}
	for _, st := range []Step{{Kind: Create, Table: onlyTable, Schema: s}, writeKey(oribi.OpInsert, 0, 1, true), writeKey(oribi.OpInsert, 2, 1, true),
		{Kind: Flush, Table: onlyTable}, writeKey(oribi.OpInsert, 1, 2, true), writeKey(oribi.OpUpdate, 0, 2, true), {Kind: Deltas, Table: onlyTable},
		writeKey(oribi.OpUpdate, 0, 3, true), writeKey(oribi.OpDelete, 2, 0, true)} {
		r.Do(st)
	}
	r.Close()
	q.base, q.model = disk.Read(), r.Model
	return q, r.Err
}

// writeKey is a batch of one operation. The value goes to all columns.
func writeKey(ask oribi.Op, key, value byte, sync bool) Step {
	op := Op{Ask: ask, Table: onlyTable, Cells: make([][]byte, 3), Set: []bool{true, ask != oribi.OpDelete, ask != oribi.OpDelete}}
	op.Cells[0] = binary.LittleEndian.AppendUint32(nil, uint32(key))
	if ask != oribi.OpDelete {
		op.Cells[1], op.Cells[2] = binary.LittleEndian.AppendUint64(nil, uint64(value)), []byte{'a' + value}
	}
	return Step{Kind: Write, Ops: []Op{op}, Sync: sync, As: asCells}
}

// steps are the operations that a sequence is made of. value tells their writes from those of other
// steps.
func (q *Sequences) steps(value byte, sync bool) (out []Step) {
	for key := range byte(3) {
		for _, ask := range []oribi.Op{oribi.OpInsert, oribi.OpUpsert, oribi.OpUpdate, oribi.OpDelete} {
			out = append(out, writeKey(ask, key, value, sync))
		}
	}
	for _, kind := range []Kind{Flush, Deltas, Compact, Minor, Major, UndoGC, Reopen} {
		out = append(out, Step{Kind: kind, Table: onlyTable, Mask: 1 << 1})
	}
	added := schema.Column{Name: string('a' + rune(value)), Type: schema.Int64, Nullable: true}
	in := writeKey(oribi.OpInsert, 3+value, value, true)
	return append(out, Step{Kind: Alter, Table: onlyTable, Alter: []Alteration{{What: "add", Add: added}}},
		Step{Kind: Ingest, Table: onlyTable, Ops: in.Ops, Size: 1})
}

// Count is how many sequences there are, those that the table refuses included.
func (q *Sequences) Count() int {
	n := 2
	for range q.Length {
		n *= len(q.steps(0, false))
	}
	return n
}

// Run carries the i-th sequence out. One with an operation that the table refuses is not gone
// through.
func (q *Sequences) Run(i int) (*Script, StateCounts, error) {
	sync := i%2 == 0
	i /= 2
	var steps []Step
	for at := range q.Length {
		all := q.steps(byte(5+at), sync)
		steps = append(steps, all[i%len(all)])
		i /= len(all)
	}
	slices.Reverse(steps) // neighbours have their beginning in common
	disk := crashfs.New(q.base)
	r := (&picture{model: q.model.clone(), settings: q.o, wall: newWall()}).runner()
	r.disk, r.crashes = disk, disk
	if r.Err = r.open(); r.Err != nil {
		return r.Script, StateCounts{}, r.Err
	}
	x := newProbing(disk, r)
	x.limit = q.Limit
	for at, st := range steps {
		widen(&st, r.Model.Tables[onlyTable].Schema)
		if st.Kind == Write && r.Model.resolve(st.Ops, false).refused >= 0 {
			return r.Script, x.counted(), errors.Join(r.Err, r.store.Close())
		}
		if at == len(steps)-1 {
			x.watch(x.check)
		}
		if !x.do(st) {
			break
		}
	}
	disk.OnChange(nil)
	if err := x.last(); err != nil {
		return r.Script, x.counted(), fmt.Errorf("behind the last step: %w", err)
	}
	return x.end()
}

// widen gives the operations of a step as many cells as the table has columns.
func widen(st *Step, s *schema.Schema) {
	for i := range st.Ops {
		op := &st.Ops[i]
		for len(op.Cells) < len(s.Columns) {
			op.Cells, op.Set = append(op.Cells, nil), append(op.Set, false)
		}
	}
}

// last opens the states behind the last step.
func (x *probing) last() error {
	at := x.disk.Point()
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.err != nil || x.r.Err != nil {
		return nil // end tells it
	}
	return x.crash(at)
}

// sequencesOfSeed is how many sequences one seed of the proof stands for.
const sequencesOfSeed = 20

// sequencesOne goes through sequences of three operations, with all states. After some hundreds of
// seeds they begin again.
func sequencesOne(seed uint64, _ string) Result {
	q, err := NewSequences(3, 0)
	if err != nil {
		return Result{Err: err}
	}
	var total StateCounts
	sequences := int64(0)
	for i := range sequencesOfSeed {
		script, c, err := q.Run((int(seed-1)*sequencesOfSeed + i) % q.Count())
		total.Add(c)
		if err != nil {
			return Result{Err: err, Script: script}
		}
		sequences += min(c.Points, 1)
	}
	return Result{Tallies: []Tally{{sequences, "sequences"}, {total.Points, "crash points"}, {total.States, "states"}, {total.Opened, "opened"},
		{sequencesOfSeed - sequences, "sequences that the table refuses"}}}
}
