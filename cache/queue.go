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
type ghosts struct {
	ring []uint64
	at   int
	set  map[uint64]struct{}
}

const (
	minGhosts = 64
	maxGhosts = 1 << 16
)

// add remembers h; entries is the number of values in the shard.
func (g *ghosts) add(h uint64, entries int) {
	if g.set == nil {
		g.set = make(map[uint64]struct{})
	}
	if want := min(max(entries, minGhosts), maxGhosts); len(g.ring) < want {
		g.ring = append(g.ring, h)
	} else {
		g.at %= len(g.ring)
		delete(g.set, g.ring[g.at])
		g.ring[g.at] = h
		g.at++
	}
	g.set[h] = struct{}{}
}

// has reports whether h is remembered.
func (g *ghosts) has(h uint64) bool {
	_, ok := g.set[h]
	return ok
}

// take reports whether h is remembered, and removes it.
func (g *ghosts) take(h uint64) bool {
	if _, ok := g.set[h]; !ok {
		return false
	}
	delete(g.set, h)
	return true
}
