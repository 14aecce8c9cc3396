package maintenance

import "time"

// Counts counts the operations of a store's background work: those that have ended since the store
// was opened, and those that are due or run.
type Counts struct {
	Queued  int // operations that are due and do not run yet
	Running int
	Paused  bool
	kinds   [9]KindCounts
}

// KindCounts counts the operations of one kind.
type KindCounts struct {
	Running      int
	Done         int64         // ended without an error
	Failed       int64         // ended with an error; canceled ones are not counted
	BytesWritten int64         // to new files, by those that are done
	Time         time.Duration // from start to end of all that have ended
}

// Of returns the counts of a kind.
func (c *Counts) Of(k Kind) KindCounts { return c.kinds[k.index()] }

// Started counts the start of an operation.
func (c *Counts) Started(k Kind) {
	c.Running++
	c.kinds[k.index()].Running++
}

// Result is how an operation ended.
type Result int

// The results.
const (
	Done Result = iota
	Failed
	Canceled // or there was nothing to do
)

// Ended counts the end of an operation that was counted by Started.
func (c *Counts) Ended(k Kind, r Result, bytes int64, took time.Duration) {
	c.Running--
	n := &c.kinds[k.index()]
	n.Running--
	n.Time += took
	switch r {
	case Done:
		n.Done++
		n.BytesWritten += bytes
	case Failed:
		n.Failed++
	}
}
