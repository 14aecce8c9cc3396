package oribi

import "sync"

// bulkGate lets images begin only while the metadata has everything that is in the log outside
// write batches. An ingest, and an Alter of an expiry rule, append their timestamps to the log
// before their metadata commit:
//
//	ingest   appends LSN 7, timestamp 70            metadata commit: rowsets with rows of 70
//	image                              metadata, log up to 7: reads as of 70 lack the rows
//
// An image waits until none of these is in flight, and none of another table begins meanwhile. They
// wait for no batch and for no gate of a table between append and publication, so this cannot
// deadlock.
type bulkGate struct {
	mu       sync.Mutex
	changed  *sync.Cond
	inFlight map[uint32]int // by table
	images   int            // that wait or begin
}

func newBulkGate() *bulkGate {
	g := &bulkGate{inFlight: map[uint32]int{}}
	g.changed = sync.NewCond(&g.mu)
	return g
}

// begin waits until no image begins, unless the table has something in flight already.
func (g *bulkGate) begin(table uint32) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.images > 0 && g.inFlight[table] == 0 {
		g.changed.Wait()
	}
	g.inFlight[table]++
}

func (g *bulkGate) end(table uint32) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.inFlight[table]--; g.inFlight[table] == 0 {
		delete(g.inFlight, table)
	}
	g.changed.Broadcast()
}

// block waits until nothing is in flight, and keeps it so until unblock.
func (g *bulkGate) block() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.images++
	for len(g.inFlight) > 0 {
		g.changed.Wait()
	}
}

func (g *bulkGate) unblock() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.images--
	g.changed.Broadcast()
}
