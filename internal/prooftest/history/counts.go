package history

// Counts counts the work of a run.
type Counts struct {
	Steps            int64
	Batches          int64 // committed
	Refused          int64 // batches with a refused row
	Operations       int64 // of batches, committed or not, and of bulk calls
	Bulk             int64 // bulk calls
	Transactions     int64 // committed, with writes
	Conflicts        int64 // transactions that conflicted
	Reads            int64 // gets, scans, counts
	Rows             int64 // compared cell by cell or by hash
	Flushes          int64
	Merges           int64
	DeltaCompactions int64
	Inside           int64 // flushes inside compactions
	Maintained       int64 // background operations of steps
	Reopenings       int64 // without crash
	Crashes          int64
	Lost             int64 // batches lost by power cuts
	Copies           int64 // checkpoints, opened and compared
	MaxRowSets       int64 // maximum of one table
}

// Add adds o to c.
func (c *Counts) Add(o Counts) {
	c.Steps += o.Steps
	c.Batches += o.Batches
	c.Refused += o.Refused
	c.Operations += o.Operations
	c.Bulk += o.Bulk
	c.Transactions += o.Transactions
	c.Conflicts += o.Conflicts
	c.Reads += o.Reads
	c.Rows += o.Rows
	c.Flushes += o.Flushes
	c.Merges += o.Merges
	c.DeltaCompactions += o.DeltaCompactions
	c.Inside += o.Inside
	c.Maintained += o.Maintained
	c.Reopenings += o.Reopenings
	c.Crashes += o.Crashes
	c.Lost += o.Lost
	c.Copies += o.Copies
	c.MaxRowSets = max(c.MaxRowSets, o.MaxRowSets)
}
