package cache

// queue is a first-in, first-out list of entries with the sum of their bytes.
type queue struct {
	head, tail *entry // newest, oldest
	bytes      int64
}

// push adds e as the newest entry.
func (q *queue) push(e *entry) {
	e.queue, e.prev, e.next = q, nil, q.head
	if q.head != nil {
		q.head.prev = e
	} else {
		q.tail = e
	}
	q.head = e
	q.bytes += e.bytes
}

// remove removes e, which must be in q.
func (q *queue) remove(e *entry) {
	if e.prev != nil {
		e.prev.next = e.next
	} else {
		q.head = e.next
	}
	if e.next != nil {
		e.next.prev = e.prev
	} else {
		q.tail = e.prev
	}
	e.queue, e.prev, e.next = nil, nil, nil
	q.bytes -= e.bytes
}

// ghosts remembers the hashes of values dropped from the fresh queue, about as many as there are
// entries. A hash collision only puts a value into the other queue.
//
// A hash is in the bucket that its low bits choose, which is one cache line: a lookup of a hash that
// is not there takes one miss of the processor's cache. In a bucket, the newest hash is the first; it
// displaces the oldest.
type ghosts struct {
	buckets []bucket // a power of two
}

type bucket [bucketHashes]uint64 // 0 = empty

const (
	bucketHashes = 8
	minGhosts    = 64
	maxGhosts    = 1 << 16
)

func (g *ghosts) bucket(h uint64) *bucket { return &g.buckets[h&uint64(len(g.buckets)-1)] }

// add remembers h; entries is the number of values in the shard.
func (g *ghosts) add(h uint64, entries int) {
	if want := min(max(entries, minGhosts), maxGhosts); len(g.buckets)*bucketHashes < want {
		g.grow(want)
	}
	b := g.bucket(h)
	at := b.find(h)
	if at < 0 {
		at = bucketHashes - 1
	}
	copy(b[1:], b[:at])
	b[0] = h
}

// grow makes room for n hashes.
func (g *ghosts) grow(n int) {
	old, buckets := g.buckets, minGhosts/bucketHashes
	for buckets*bucketHashes < n {
		buckets *= 2
	}
	g.buckets = make([]bucket, buckets)
	for i := range old {
		for k := bucketHashes - 1; k >= 0; k-- {
			if h := old[i][k]; h != 0 {
				g.add(h, 0)
			}
		}
	}
}

// find returns the index of h, −1 if b does not have it.
func (b *bucket) find(h uint64) int {
	for i, x := range b {
		if x == h {
			return i
		}
	}
	return -1
}

// has reports whether h is remembered.
func (g *ghosts) has(h uint64) bool {
	return len(g.buckets) > 0 && g.bucket(h).find(h) >= 0
}

// take reports whether h is remembered, and removes it.
func (g *ghosts) take(h uint64) bool {
	if len(g.buckets) == 0 {
		return false
	}
	b := g.bucket(h)
	at := b.find(h)
	if at < 0 {
		return false
	}
	copy(b[at:], b[at+1:])
	b[bucketHashes-1] = 0
	return true
}
