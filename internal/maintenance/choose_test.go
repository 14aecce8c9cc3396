package maintenance

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
)

const mib = 1 << 20

// calm is a state in which no limit is reached and no operation runs.
var calm = State{Workers: 2, Memory: 10 * mib, SoftMemory: 100 * mib, LogTarget: 128 * mib}

func TestChooseAppliesTheRulesInOrder(t *testing.T) {
	short, busy, full := calm, calm, calm
	short.Memory = 101 * mib
	busy.Running, busy.Rewriting = 1, 1
	full.Running = 2
	// late is busy with a spare worker, and spent with that worker busy too.
	late := busy
	late.Spare = true
	spent, flushing, shortLate, idle := late, late, late, calm
	spent.Running, spent.Rewriting = 2, 2
	flushing.Running = 2
	shortLate.Memory = short.Memory
	idle.Spare, idle.Running = true, 2
	var (
		logGC     = Operation{Kind: LogGC, Log: 1}
		small     = Operation{Kind: Flush, Table: 1, Memory: 2 * mib, Log: 100 * mib}
		large     = Operation{Kind: Flush, Table: 2, Memory: 30 * mib, Log: 10 * mib}
		atLimit   = Operation{Kind: Flush, Table: 3, Memory: 20 * mib, Full: true}
		larger    = Operation{Kind: DeltaFlush, Table: 4, Memory: 21 * mib, Full: true}
		tiny      = Operation{Kind: Flush, Table: 5, Memory: mib - 1, Log: 5 * mib}
		old       = Operation{Kind: Flush, Table: 6, Memory: 1000, Log: 128 * mib}
		oldest    = Operation{Kind: Flush, Table: 7, Memory: 10, Log: 129 * mib}
		oldLarge  = Operation{Kind: Flush, Table: 8, Memory: 2000, Log: 128 * mib}
		undos     = Operation{Kind: UndoGC, Table: 1, Data: 1000}
		moreUndos = Operation{Kind: UndoGC, Table: 2, Data: 1001}
		sparse    = Operation{Kind: Reclaim, Data: 5000, Cost: 4500}
		dense     = Operation{Kind: Reclaim, Data: 5000, Cost: 5000}
		cheap     = Operation{Kind: Merge, Table: 1, Gain: 0.5, Cost: 8 * mib}
		deep      = Operation{Kind: Merge, Table: 1, Gain: 1, Cost: 80 * mib}
		dear      = Operation{Kind: Merge, Table: 2, Gain: 0.9, Cost: 80 * mib}
		better    = Operation{Kind: Major, Table: 3, Gain: 0.6, Cost: 8 * mib}
		crumb     = Operation{Kind: Minor, Table: 4, Gain: 0.02, Cost: 1000}
		useless   = Operation{Kind: Merge, Table: 5, Cost: 1}
		young     = Operation{Kind: Flush, Table: 9, Memory: 3000, Cost: 3000}
		blocked   = Operation{Kind: Flush, Table: 9, Memory: 90 * mib, Full: true, Log: 200 * mib, Blocked: true}
	)
	for _, test := range []struct {
		name  string
		state State
		ops   []Operation
		want  int
		rule  Rule
	}{
		{"nothing", calm, nil, -1, ""},
		{"nothing with a use", calm, []Operation{useless, young, dense, tiny}, -1, ""},
		{"log that nobody needs", short, []Operation{large, atLimit, logGC}, 2, ForRelease},
		{"memory is short", short, []Operation{small, large, atLimit, oldest}, 1, ForMemory},
		{"little memory does not help", short, []Operation{tiny, undos}, 1, ForData},
		{"nothing to free though memory is short", short, []Operation{tiny}, -1, ""},
		{"full", calm, []Operation{large, atLimit, oldest}, 1, ForFull},
		{"the largest full one", calm, []Operation{atLimit, larger}, 1, ForFull},
		{"the log is long", calm, []Operation{small, old, undos, better}, 1, ForLog},
		{"what holds back most of the log", calm, []Operation{old, oldest}, 1, ForLog},
		{"and of equal ones most memory", calm, []Operation{old, oldLarge}, 1, ForLog},
		{"data", calm, []Operation{undos, moreUndos, better}, 1, ForData},
		{"data less its cost", calm, []Operation{sparse, moreUndos}, 1, ForData},
		{"gain for the cost", calm, []Operation{dear, cheap}, 1, ForGain},
		{"gain at equal cost", calm, []Operation{cheap, better}, 1, ForGain},
		{"a commit has a cost too", calm, []Operation{crumb, better}, 1, ForGain},
		{"the first of equal ones", calm, []Operation{useless, cheap, cheap}, 1, ForGain},
		{"what is blocked", calm, []Operation{blocked, cheap}, 1, ForGain},
		{"one worker stays free for memory", busy, []Operation{undos, sparse, better, oldest}, 3, ForLog},
		{"no rewriting without a second worker", busy, []Operation{undos, sparse, better}, -1, ""},
		{"no worker", full, []Operation{logGC, atLimit}, -1, ""},
		{"the spare worker takes a late merge", late, []Operation{undos, better, deep}, 2, ForGain},
		{"and no other one", late, []Operation{undos, sparse, better, cheap}, -1, ""},
		{"while a flush runs", flushing, []Operation{atLimit, deep}, 1, ForGain},
		{"only if there is one", busy, []Operation{deep}, -1, ""},
		{"only if the others that rewrite are busy", idle, []Operation{deep}, -1, ""},
		{"only one merge more", spent, []Operation{deep}, -1, ""},
		{"not while memory is short", shortLate, []Operation{tiny, deep}, -1, ""},
		{"a flush comes before a late merge", late, []Operation{deep, atLimit}, 1, ForFull},
		{"and next to it", spent, []Operation{deep, atLimit}, 1, ForFull},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got, rule := Choose(test.state, test.ops); got != test.want || rule != test.rule {
				t.Errorf("%d (%s), want %d (%s)", got, rule, test.want, test.rule)
			}
		})
	}
}

// Whatever runs, as long as a worker is free a full memory store is flushed: rewriting never takes
// the last one, and the spare one takes no other's place.
func TestRewritingLeavesAWorker(t *testing.T) {
	r := rand.New(rand.NewPCG(seedtest.Seed(t), 0))
	for range 2000 {
		s := calm
		s.Workers, s.Spare = 2+r.IntN(4), r.IntN(2) == 0
		kinds := Kinds()
		flushes := 0 // that run
		for {        // start at random until nothing starts
			var ops []Operation
			for range 3 {
				ops = append(ops, Operation{Kind: kinds[r.IntN(len(kinds))], Data: r.Int64N(3),
					Gain: 2 * r.Float64(), Full: r.IntN(9) == 0, Memory: 1 + r.Int64N(9)})
			}
			list := s.Startable(ops)
			if len(list) == 0 {
				break
			}
			s.Running++
			if !ops[list[r.IntN(len(list))]].Kind.FreesMemory() {
				s.Rewriting++
			} else {
				flushes++
			}
			if spare := s.Rewriting - (s.Workers - 1); spare > 1 || spare > 0 && !s.Spare {
				t.Fatalf("%d rewrite: %+v", s.Rewriting, s)
			}
			// Without the spare worker, flushes have those that do not rewrite.
			free := flushes+min(s.Rewriting, s.Workers-1) < s.Workers
			if i, _ := Choose(s, []Operation{{Kind: Flush, Full: true, Memory: 1}}); (i == 0) != free {
				t.Fatalf("%+v: %d, want a flush: %t", s, i, free)
			}
			if flushes == 0 && !free {
				t.Fatalf("no worker for a flush: %+v", s)
			}
		}
	}
}

// What Choose takes is one of those that may start, and repeated choices end when nothing of use is
// left.
func TestChooseEnds(t *testing.T) {
	r := rand.New(rand.NewPCG(seedtest.Seed(t), 1))
	kinds := Kinds()
	for range 500 {
		var ops []Operation
		for range r.IntN(20) {
			ops = append(ops, Operation{Kind: kinds[r.IntN(len(kinds))], Memory: r.Int64N(8 * mib),
				Log: r.Int64N(200 * mib), Data: r.Int64N(9),
				Gain: r.Float64() - 0.5, Cost: r.Int64N(9) - 1, Full: r.IntN(4) == 0, Blocked: r.IntN(3) == 0})
		}
		s := calm
		s.Memory = r.Int64N(200 * mib)
		for i, rule := Choose(s, ops); i >= 0; i, rule = Choose(s, ops) {
			if ops[i].Blocked || rule == "" || !s.Due(ops[i]) {
				t.Fatalf("chose %+v, %q", ops[i], rule)
			}
			ops[i] = ops[len(ops)-1]
			ops = ops[:len(ops)-1]
		}
		for _, o := range ops {
			if !o.Blocked && s.Due(o) {
				t.Fatalf("%+v is due and was not chosen", o)
			}
		}
	}
}

func TestFlushGainGrowsWithAge(t *testing.T) {
	for _, test := range []struct {
		bytes, limit int64
		age          time.Duration
		want         float64
	}{
		{0, 100, 2 * time.Hour, 0},
		{90, 100, 9 * time.Minute, 0},
		{1, 100, 12 * time.Minute, 0.2},
		{90, 100, 12 * time.Minute, 0.9},
		{1, 100, time.Hour, 1},
		{1, 0, 10 * time.Minute, 1},
		{200, 100, 30 * time.Minute, 1},
	} {
		must.Equal(t, FlushGain(test.bytes, test.limit, test.age), test.want,
			test.bytes, "of", test.limit, "bytes after", test.age)
	}
}

func TestBackoffDoublesUpToItsBound(t *testing.T) {
	var b Backoff
	now := time.Unix(1000, 0)
	merge, flush := Job{Merge, 1}, Job{Flush, 1}
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300} {
		want *= time.Second
		b.Failed(merge, now)
		if !b.Delayed(merge, now.Add(want-1)) || b.Delayed(merge, now.Add(want)) {
			t.Fatalf("failure %d: the delay is not %v", i+1, want)
		}
		if b.Delayed(flush, now) || b.Delayed(Job{Merge, 2}, now) {
			t.Fatal("another job is delayed")
		}
	}
	b.Succeeded(merge)
	must.Equal(t, b.Delayed(merge, now), false, "delayed after a success")
	b.Failed(merge, now)
	if b.Delayed(merge, now.Add(time.Second)) {
		t.Error("a success does not shorten the delay of the next failure")
	}
	b.Failed(flush, now)
	b.Failed(Job{Flush, 2}, now)
	b.Forget(1)
	if b.Delayed(merge, now) || b.Delayed(flush, now) || !b.Delayed(Job{Flush, 2}, now) {
		t.Error("Forget of table 1")
	}
}

func TestCountsAddUp(t *testing.T) {
	var c Counts
	for _, k := range Kinds() {
		c.Started(k)
	}
	c.Started(Merge)
	must.Equal(t, c.Running, 10)
	must.Equal(t, c.Of(Merge).Running, 2)
	c.Ended(Merge, Done, 100, time.Second)
	c.Ended(Merge, Failed, 7, time.Second)
	c.Ended(Flush, Canceled, 7, time.Second)
	if m, f := c.Of(Merge), c.Of(Flush); m != (KindCounts{0, 1, 1, 100, 2 * time.Second}) ||
		f != (KindCounts{Time: time.Second}) || c.Running != 7 {
		t.Errorf("%+v", c)
	}
}
