package history

import (
	"github.com/oribi-db/oribi/internal/prooftest/script"
)

// WriteHeavy returns weights for a history with many writes of each kind.
func WriteHeavy() []Weighted {
	return []Weighted{{script.Write, 40}, {script.Ingest, 4}, {script.UpdateWhere, 2}, {script.DeleteWhere, 1},
		{script.DeleteRange, 1}, {script.Truncate, 1}, {script.Restore, 2}, {script.Begin, 6}, {script.Get, 4},
		{script.Find, 5}, {script.Count, 1}, {script.Flush, 8}, {script.FlushAll, 4}, {script.Merge, 4},
		{script.Compact, 2}, {script.Deltas, 4}, {script.Minor, 2}, {script.Major, 3}, {script.Recompress, 2},
		{script.UndoGC, 1}, {script.Check, 1}, {script.Verify, 1}, {script.Reopen, 2}, {script.ReadOnly, 1},
		{script.Kill, 2}, {script.Create, 1}, {script.Drop, 1}, {script.Alter, 3}, {script.Rename, 1}}
}

// SmallSettings returns the settings of a short history with few keys and rows.
func SmallSettings(seed uint64) script.Settings {
	o := RandomSettings(seed)
	o.Keys = 4 + int(seed%40)
	o.Background = seed%4 == 0
	return o
}

// BulkSettings returns the settings of a short history of large write batches.
func BulkSettings(seed uint64) script.Settings {
	o := RandomSettings(seed)
	o.Batch = 64 << (seed % 3)
	return o
}

// BackgroundSettings returns the settings of a history with background flushes and compactions.
func BackgroundSettings(seed uint64) script.Settings {
	o := RandomSettings(seed)
	o.Background, o.FlushBytes, o.Shuffled = true, 1<<14, seed%2 == 1
	return o
}

// InsideSettings returns the settings of a history for NewInside.
func InsideSettings(seed uint64) script.Settings {
	o := SmallSettings(seed)
	o.Background = false
	o.Policy = "none" // the history chooses
	return o
}

// NewInside returns a generator of histories in which flushes run inside compactions of the same
// table.
func NewInside(o script.Settings) *Generator {
	g := NewGenerator(o)
	g.inside = true
	// for compactions to have something to do
	g.Weight = append(g.Weight, Weighted{script.Flush, 120}, Weighted{script.Deltas, 40})
	return g
}

// TraceSettings returns the settings of a history whose crash states are opened; log segments are
// small.
func TraceSettings(seed uint64) script.Settings {
	o := RandomSettings(seed)
	o.Hybrid, o.History, o.Batch, o.Keys, o.NoCrashes, o.Segment = false, 0, 0, 6+int(seed%30), true, 4<<10
	return o
}

// NewTrace returns a generator of writes and rewrites on two tables of few columns.
func NewTrace(o script.Settings) *Generator {
	g := NewGenerator(o)
	g.tables, g.widest = 2, 5
	g.Weight = []Weighted{{script.Write, 640}, {script.Ingest, 25}, {script.UpdateWhere, 16}, {script.DeleteWhere, 10},
		{script.DeleteRange, 6}, {script.Truncate, 4}, {script.Restore, 14}, {script.Begin, 40}, {script.Flush, 70},
		{script.FlushAll, 40}, {script.Deltas, 70}, {script.Merge, 40}, {script.Compact, 10}, {script.Minor, 30}, {script.Major, 35},
		{script.Recompress, 15}, {script.UndoGC, 10},
		{script.Alter, 12}, {script.Rename, 8}, {script.Drop, 2}, {script.Reopen, 8}}
	return g
}

// NewCopies returns a generator of histories with many checkpoints.
func NewCopies(o script.Settings) *Generator {
	g := NewGenerator(o)
	g.Weight = append(g.Weight, Weighted{script.Copy, 60})
	return g
}

// NewChurn returns a generator of histories in which the same few rows are deleted and come back,
// by writes and ingests, between flushes and compactions. No table is altered or dropped.
func NewChurn(o script.Settings) *Generator {
	g := NewGenerator(o)
	g.tables, g.widest = 1+int(o.Seed%2), 5
	g.Weight = []Weighted{{script.Write, 300}, {script.Ingest, 120}, {script.UpdateWhere, 10}, {script.DeleteWhere, 30},
		{script.DeleteRange, 20}, {script.Truncate, 30}, {script.Restore, 20},
		{script.Flush, 120}, {script.Deltas, 90}, {script.Minor, 15}, {script.Major, 20}, {script.Merge, 15},
		{script.Compact, 6}, {script.Recompress, 6}, {script.UndoGC, 6}, {script.Reopen, 20}}
	return g
}

// LargeSettings returns the settings of a history for NewLarge.
func LargeSettings(seed uint64) script.Settings {
	o := RandomSettings(seed)
	o.Hybrid, o.History, o.NoCrashes, o.Background = false, 0, true, false
	o.Keys, o.Batch, o.FlushBytes, o.RowSetBytes = 20_000, 32, 1<<20, 1<<(14+int(seed%4))
	o.Policy = "none" // many rowsets stay, with their deltas
	return o
}

// NewLarge returns a generator of histories of large write batches on tables that do not change,
// with many flushes of rows and of deltas.
func NewLarge(o script.Settings) *Generator {
	g := NewGenerator(o)
	g.tables, g.widest = 1+int(o.Seed%2), 5
	g.Weight = []Weighted{{script.Write, 400}, {script.Ingest, 40}, {script.UpdateWhere, 20}, {script.DeleteWhere, 4},
		{script.DeleteRange, 10}, {script.Restore, 2},
		{script.Flush, 60}, {script.Deltas, 100}, {script.Minor, 15}, {script.Major, 8}, {script.Merge, 6},
		{script.UndoGC, 3}, {script.Reopen, 6}}
	return g
}
