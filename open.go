package oribi

import (
	"fmt"

	"github.com/oribi-db/oribi/internal/fault"
	"github.com/oribi-db/oribi/internal/store"
	"github.com/oribi-db/oribi/storeinfo"
)

// Open opens the store in dir. It creates a store if dir is empty, or if dir is missing and its
// parent exists.
//
// If the process that wrote the store was killed, Open recovers it: the store contains every write
// batch that was acknowledged as durable, completely. Store.Recovery returns what Open found.
//
// Errors: ErrNotStore if dir contains something else or, with ErrorIfMissing or ReadOnly, nothing;
// ErrLocked; ErrCorrupt; ErrUnsupported for a newer format; ErrExists; those of the file system. A
// follower (Options.Follow) waits up to five seconds for a state that it can read. A
// failed Open changes nothing, except that a writer creates a missing directory, writes LOCK, and
// restarts an unfinished format.
func Open(dir string, o *Options) (*Store, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if dir == "" {
		return nil, fmt.Errorf("oribi: open: the name of the directory is empty: %w", fault.ErrNotStore)
	}
	s := &Store{opts: o.filled()}
	var err error
	if s.core, err = store.Open(dir, s.options()); err != nil {
		return nil, fmt.Errorf("oribi: %s: %w", dir, err)
	}
	s.buildIndexes()
	return s, nil
}

// options returns the options of the store's core.
func (s *Store) options() store.Options {
	o := &s.opts
	history, _ := historySeconds(o.History) // Validate has checked it
	return store.Options{FS: o.FS, Clock: o.Clock, Logger: o.Logger, ReadOnly: o.ReadOnly, Follow: o.Follow,
		ErrorIfMissing: o.ErrorIfMissing, ErrorIfExists: o.ErrorIfExists,
		HistorySec: history, HistoryChosen: o.History != defaultHistory,
		MemoryLimit: o.MemoryLimit, ReadAheadBytes: o.ReadAheadBytes, RowSetBytes: o.RowSetBytes,
		LogSegmentBytes: o.LogSegmentBytes, LogLimit: o.logLimit, CompactionBandwidth: o.CompactionBandwidth,
		RecompressAfter: o.RecompressAfter, FollowerLag: o.FollowerLag,
		Background: store.BackgroundOptions{Manual: o.Manual, Workers: o.MaintenanceWorkers, FlushBytes: o.FlushBytes,
			Policy: o.Policy, Schedule: o.Schedule},
		Progress: o.Progress, Listener: o.Listener,
		Face: func(t *store.Table) any { return &Table{store: s, tab: t.Tablet, entry: t} }}
}

// Recovery describes what Open found in the log, and what a writer repaired.
type Recovery = storeinfo.Recovery

// Recovery returns what Open found when it opened the store.
func (s *Store) Recovery() Recovery { return s.core.Recovery }
