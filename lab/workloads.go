package lab

// Workloads lists the workloads.
func Workloads() []About {
	list := make([]About, len(kinds))
	for i := range kinds {
		list[i] = kinds[i].About
	}
	return list
}

// kind is a kind of workload.
type kind struct {
	About
	fields []string // besides those that all have
	stream func(w *Workload, r *random) stream
}

// common are the fields of all workloads that write rows.
var common = []string{"keys", "operations", "value_bytes", "history"}

var kinds = []kind{
	{About{"uniform", "upserts of random keys"}, common, newUniform},
	{About{"zipf", "upserts of random keys, of which few are frequent: theta is the exponent; the frequent ones are " +
		"spread over all keys"},
		with(common, "theta"), newZipf},
	{About{"time-series", "inserts in the order of time, of which some are late; with several series each has keys " +
		"of its own"},
		with(common, "late", "series"), newTimeSeries},
	{About{"hot-updates", "inserts in random order, then updates, nine of ten in a small range of the keys"},
		with(common, "hot"), newHotUpdates},
	{About{"old-deletes", "inserts of random keys, each deleted when it is the oldest of so many; history is short"},
		common, newOldDeletes},
	{About{"versions", "several versions of all rows, and reads of each version after each kind of compaction; the " +
		"policy makes no difference"},
		[]string{"keys", "versions", "value_bytes", "history"}, nil},
	{About{"replay", "the rowsets of a real table, from a layout or an event log, with merges of another policy"},
		[]string{"layout", "events", "table", "merges"}, nil},
}

func with(names []string, more ...string) []string {
	return append(names[:len(names):len(names)], more...)
}

// opKind is the kind of an operation: insert, update, or delete.
type opKind uint8

const (
	opInsert opKind = iota
	opUpdate
	opDelete
)

// op is an operation on one row. A row is inserted only if its key is absent, and updated or
// deleted only if its key is present.
type op struct {
	kind opKind
	key  int64 // not negative
}

// stream returns a workload's operations one after the other.
type stream interface{ next() op }

// keySet is a set of keys below a limit.
type keySet []uint64

func newKeySet(limit int64) keySet { return make(keySet, (limit+63)/64) }

// add adds a key and reports whether it is new.
func (s keySet) add(key int64) bool {
	word, bit := &s[key/64], uint64(1)<<(key%64)
	isNew := *word&bit == 0
	*word |= bit
	return isNew
}

// upsert returns the operation that writes a row.
func (s keySet) upsert(key int64) op {
	if s.add(key) {
		return op{opInsert, key}
	}
	return op{opUpdate, key}
}

type uniform struct {
	r    *random
	keys int64
	set  keySet
}

func newUniform(w *Workload, r *random) stream { return &uniform{r, w.Keys, newKeySet(w.Keys)} }

func (u *uniform) next() op { return u.set.upsert(u.r.Int64N(u.keys)) }

type zipf struct {
	ranks *zipfRanks
	keys  int64
	set   keySet
}

func newZipf(w *Workload, r *random) stream {
	return &zipf{newZipfRanks(r, w.Keys, w.Theta), w.Keys, newKeySet(w.Keys)}
}

func (z *zipf) next() op { return z.set.upsert(shuffled(z.ranks.next(), z.keys)) }

// shuffled maps the numbers below n to each other, neighbors far apart.
func shuffled(i, n int64) int64 {
	const prime = 2654435761 // does not divide n, which is less; i·prime is less than 2^63
	return i * prime % n
}

// timeSeries inserts rows with ascending times. The keys of a series are contiguous: all are before
// or after the keys of each other series.
type timeSeries struct {
	r     *random
	late  float64
	ends  []int64 // of each series, the next time
	extra map[int64]bool
}

const (
	seriesKeys = 1 << 32 // of a series
	lateTimes  = 1000    // by which a row may be late, at most
)

func newTimeSeries(w *Workload, r *random) stream {
	return &timeSeries{r: r, late: w.Late, ends: make([]int64, w.Series), extra: map[int64]bool{}}
}

func (t *timeSeries) next() op {
	series := t.r.Int64N(int64(len(t.ends)))
	first, end := series*seriesKeys, &t.ends[series]
	if *end > 0 && t.r.Float64() < t.late {
		// Rows in time have even keys, late ones odd keys.
		key := first + 2*(*end-1-t.r.Int64N(min(*end, lateTimes))) + 1
		if t.extra[key] {
			return op{opUpdate, key}
		}
		t.extra[key] = true
		return op{opInsert, key}
	}
	*end++
	return op{opInsert, first + 2*(*end-1)}
}

// hotUpdates inserts all keys, or as many as half of the operations, and updates them.
type hotUpdates struct {
	r                        *random
	keys, inserted, from, to int64 // from and to: the hot keys
}

func newHotUpdates(w *Workload, r *random) stream {
	keys := max(1, min(w.Keys, w.Operations/2))
	hot := max(1, int64(w.Hot*float64(keys)))
	from := r.Int64N(keys - hot + 1)
	return &hotUpdates{r: r, keys: keys, from: from, to: from + hot}
}

func (h *hotUpdates) next() op {
	if h.inserted < h.keys {
		h.inserted++
		return op{opInsert, shuffled(h.inserted-1, h.keys)}
	}
	if h.r.Float64() < 0.9 {
		return op{opUpdate, h.from + h.r.Int64N(h.to-h.from)}
	}
	return op{opUpdate, h.r.Int64N(h.keys)}
}

// oldDeletes inserts so many rows, or as many as half of the operations, and then deletes the
// oldest row before it inserts the next one.
type oldDeletes struct{ keys, inserted, deleted int64 }

func newOldDeletes(w *Workload, r *random) stream {
	return &oldDeletes{keys: max(1, min(w.Keys, w.Operations/2))}
}

func (o *oldDeletes) next() op {
	if o.inserted-o.deleted < o.keys {
		o.inserted++
		return op{opInsert, scattered(o.inserted)}
	}
	o.deleted++
	return op{opDelete, scattered(o.deleted)}
}

// scattered maps each number below 2^40 to another one.
func scattered(i int64) int64 { return i * 0x6A09E667F3 & (1<<40 - 1) }
