package store

import "sync"

// Gate lets images begin only while the metadata has everything that is in the log outside
// write batches. An ingest, and an Alter of an expiry rule, append their timestamps to the log
// before their metadata commit:
//
//	ingest   appends LSN 7, timestamp 70            metadata commit: rowsets with rows of 70
//	image                              metadata, log up to 7: reads as of 70 lack the rows
//
// A follower in another process sees only the log and the metadata. It ends the log before a record
// that announces such a change, until it finds the change in the metadata, or a record that says
// that it will never come: after one has failed, end has such a record written.
//
// An image waits until none of these is in flight, and none of another table begins meanwhile. They
// wait for no batch and for no gate of a table between append and publication, so this cannot
// deadlock.
type Gate struct {
	mu       sync.Mutex
	changed  *sync.Cond
	inFlight map[uint32]int // by table
	images   int            // that wait or begin

	uncommitted map[uint32]bool // tables in inFlight without a metadata commit since
	failed      bool            // one has ended without a metadata commit, and no record says so
}

func newGate() *Gate {
	g := &Gate{inFlight: map[uint32]int{}, uncommitted: map[uint32]bool{}}
	g.changed = sync.NewCond(&g.mu)
	return g
}

// begin waits until no image begins, unless the table has something in flight already.
func (g *Gate) begin(table uint32) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.images > 0 && g.inFlight[table] == 0 {
		g.changed.Wait()
	}
	g.inFlight[table]++
	g.uncommitted[table] = true
}

// Committed notes a metadata commit of the table.
func (g *Gate) Committed(table uint32) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.uncommitted, table)
}

// end ends what begin began. If something has failed and nothing is in flight any more, it calls
// abort, before anything else begins, until that succeeds.
func (g *Gate) end(table uint32, abort func() error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.inFlight[table]--; g.inFlight[table] == 0 {
		delete(g.inFlight, table)
		g.failed = g.failed || g.uncommitted[table]
		delete(g.uncommitted, table)
	}
	if len(g.inFlight) == 0 && g.failed && abort() == nil {
		g.failed = false
	}
	g.changed.Broadcast()
}

// Block waits until nothing is in flight, and keeps it so until Unblock.
func (g *Gate) Block() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.images++
	for len(g.inFlight) > 0 {
		g.changed.Wait()
	}
}

// Unblock ends a call of Block.
func (g *Gate) Unblock() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.images--
	g.changed.Broadcast()
}
