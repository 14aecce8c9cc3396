// Package maintenance chooses the next background operation of a store.
//
// The store lists the Operations that it could do, with the space that each would free, its gain,
// and its cost. Choose picks one by fixed rules. Backoff delays operations that have failed, and
// Counts sums up what was done. Nothing here reads a clock, starts a goroutine or touches a file: a
// choice depends on its arguments only.
//
//	for i, _ := maintenance.Choose(state, ops); i >= 0; i, _ = maintenance.Choose(state, ops) {
//		start(ops[i]) // and list the operations again
//	}
//
// The rules are taken from Kudu's maintenance manager, without its random numbers and priorities;
// see docs/decisions/0031-maintenance.md for the differences. Source: tablet spec §17.
package maintenance

import (
	"cmp"
	"slices"
	"time"
)

// Kind is the kind of an operation. Where a Kind has an event, it is the kind of the event.
type Kind string

// The kinds.
const (
	Flush      Kind = "flush"       // write the MemRowSet and the delta mem stores of a table to files
	DeltaFlush Kind = "delta-flush" // write only the delta mem stores
	Minor      Kind = "minor"       // merge the redo files of a rowset into one
	Major      Kind = "major"       // apply redos of a rowset to its base data
	Recompress Kind = "recompress"  // rewrite columns of a rowset to be smaller
	Merge      Kind = "merge"       // merge rowsets
	UndoGC     Kind = "undo-gc"     // drop undo files and rowsets that history no longer contains
	LogGC      Kind = "log-gc"      // confirm the metadata and remove log segments
	Reclaim    Kind = "reclaim"     // copy the live blocks out of a container that has few of them
)

// Kinds returns all kinds.
func Kinds() []Kind {
	return []Kind{Flush, DeltaFlush, Minor, Major, Recompress, Merge, UndoGC, LogGC, Reclaim}
}

// FreesMemory reports whether operations of the kind free memory or log rather than rewrite files.
// One worker is kept free for them.
func (k Kind) FreesMemory() bool { return k == Flush || k == DeltaFlush || k == LogGC }

// Operation describes an operation that could run. Sizes are in bytes and estimates.
type Operation struct {
	Kind  Kind
	Table uint32 // number of the table; 0 for LogGC and Reclaim

	Memory int64 // frees so much memory
	Log    int64 // lets so much log be removed, unless another table needs it too
	Data   int64 // frees so much disk space
	// Gain is by how much it improves reads. Only the order of the gains of operations matters, and for a
	// merge whether it is lateGain; it is the fall of the depth, unless the policy has another measure.
	Gain float64
	Cost int64 // bytes that it reads and writes

	Full    bool // it empties a memory store that has reached its limit
	Blocked bool // it cannot start now: another job of the table runs, or it has failed before
}

// State is the state of the store on which a choice depends, besides the operations.
type State struct {
	Workers   int  // the number of operations that may run at once, at least 2
	Spare     bool // there is one worker more, for merges that are late; see spare
	Running   int  // how many operations run
	Rewriting int  // of these, how many are of kinds that do not free memory

	Memory     int64 // bytes in memory stores
	SoftMemory int64 // above it, memory is freed before anything else is done
	LogTarget  int64 // an operation that holds back so much log comes before others
}

// Rule is the reason for a choice.
type Rule string

// The rules, in the order in which they apply.
const (
	ForRelease  Rule = "log segments are not needed"
	ForMemory   Rule = "memory is short"
	ForFull     Rule = "a memory store is full"
	ForLog      Rule = "the log is long"
	ForData     Rule = "files are not needed"
	ForGain     Rule = "reads get faster"
	nothingToDo Rule = ""
)

// minPressure is the least that an operation must free to be chosen because memory is short.
// Otherwise a store whose memory is used by other things would flush every few rows.
const minPressure = 1 << 20

// fixedCost is the cost of an operation without its bytes: a metadata commit is some syncs, in the
// time of which about so many bytes are written. It keeps small operations from always being first.
const fixedCost = 1 << 20

// Choose returns the index of the operation to start next, and the rule by which it was chosen; −1
// if none should start now. Of equal operations it takes the first.
//
// The first rule that finds one decides: log segments that can be removed; the largest memory store
// while memory is short; the largest of those that are full; what holds back most of the log, if
// that is LogTarget or more; what frees most disk space, less its cost; the largest gain for its
// cost.
func Choose(s State, ops []Operation) (int, Rule) {
	for _, r := range []struct {
		rule Rule
		// The rule chooses the operation with the largest pair. It does not apply to an operation
		// whose first number is 0 or less.
		value func(*Operation) (first, second float64)
	}{
		{ForRelease, func(o *Operation) (float64, float64) { return of(o.Kind == LogGC, o.Log), 0 }},
		{ForMemory, func(o *Operation) (float64, float64) {
			return of(s.Memory > s.SoftMemory && o.Memory >= minPressure, o.Memory), float64(o.Log)
		}},
		{ForFull, func(o *Operation) (float64, float64) { return of(o.Full, o.Memory), float64(o.Log) }},
		{ForLog, func(o *Operation) (float64, float64) {
			return of(o.Kind != LogGC && o.Log > 0 && o.Log >= s.LogTarget, o.Log), float64(o.Memory)
		}},
		{ForData, func(o *Operation) (float64, float64) { return float64(o.Data - min(o.Cost, o.Data)), 0 }},
		{ForGain, func(o *Operation) (float64, float64) { return o.worth(), 0 }},
	} {
		best, first, second := -1, 0.0, 0.0
		for i := range ops {
			if !s.mayStart(&ops[i]) {
				continue
			}
			f, g := r.value(&ops[i])
			if f > 0 && cmp.Or(cmp.Compare(f, first), cmp.Compare(g, second)) > 0 {
				best, first, second = i, f, g
			}
		}
		if best >= 0 {
			return best, r.rule
		}
	}
	return -1, nothingToDo
}

func of(applies bool, n int64) float64 {
	if !applies {
		return 0
	}
	return float64(n)
}

// lateGain is the gain from which on a merge is late if no worker is free for it: reads by key look into
// one rowset less after it.
const lateGain = 1

// mayStart reports whether there is a worker for the operation and nothing blocks it.
func (s *State) mayStart(o *Operation) bool {
	switch {
	case o.Blocked:
		return false
	case o.Kind.FreesMemory():
		return s.Running-max(0, s.Rewriting-(s.Workers-1)) < s.Workers // the spare one takes no other's place
	}
	return s.mayRewrite() || o.Kind == Merge && o.Gain >= lateGain && s.spare()
}

// mayRewrite reports whether a worker is free for an operation of any kind.
func (s *State) mayRewrite() bool { return s.Running < s.Workers && s.Rewriting < s.Workers-1 }

// spare reports whether the spare worker may take a late merge: all others that may rewrite do so, and
// no flush is urgent.
func (s *State) spare() bool {
	return s.Spare && s.Rewriting == s.Workers-1 && s.Memory <= s.SoftMemory
}

// MayPlan reports whether a worker is free to look for merges.
func (s State) MayPlan() bool { return s.mayRewrite() || s.spare() }

// Startable returns the indexes of the operations that Choose chooses among, those without any use
// included.
func (s State) Startable(ops []Operation) (list []int) {
	for i := range ops {
		if s.mayStart(&ops[i]) {
			list = append(list, i)
		}
	}
	return list
}

// worth returns the gain for each byte of the cost.
func (o *Operation) worth() float64 { return o.Gain / float64(max(o.Cost, 0)+fixedCost) }

// After these times, rows and changes that wait for no limit are flushed: first when there is
// nothing better to do, then before most other things.
const (
	flushAfter = 10 * time.Minute
	flushAt    = time.Hour
)

// FlushGain returns the gain of flushing memory stores of some bytes, of which limit is the limit,
// and in which the oldest change has been for age. It is 0 for young ones, since the file of a few
// changes would soon be merged with the next one.
func FlushGain(bytes, limit int64, age time.Duration) float64 {
	if bytes <= 0 || age < flushAfter {
		return 0
	}
	return min(1, max(age.Seconds()/flushAt.Seconds(), float64(bytes)/float64(max(limit, 1))))
}

// Due reports whether Choose would take the operation if it were the only one and nothing blocked
// it.
func (s State) Due(o Operation) bool {
	o.Blocked = false
	s.Workers, s.Running, s.Rewriting = 2, 0, 0
	i, _ := Choose(s, []Operation{o})
	return i >= 0
}

// index returns the index of k in Kinds.
func (k Kind) index() int { return slices.Index(Kinds(), k) }
