package wal

import (
	"fmt"
)

// Sync returns when all records up to upTo, inclusive, are durable. Of many callers one syncs for all:
//
//	time      →
//	appended  1   2 3 4                5
//	caller A  sync(1) ──────┐ leads for 1
//	caller B      sync(2)   wait ─────┐ leads for 2, 3, 4
//	caller C        sync(4) wait ─────┘ returns with B
//
// Append goes on meanwhile; only the change to a new segment waits for a sync under way, and the
// reverse. Errors: ErrPoisoned, ErrClosed.
func (l *Log) Sync(upTo LSN) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.usable(); err != nil {
		return err
	}
	if upTo >= l.Next() {
		return fmt.Errorf("wal: sync up to LSN %d, the last is %d", upTo, l.Next()-1)
	}
	for l.Durable() < upTo {
		if err := l.usable(); err != nil {
			return err
		}
		if l.syncing {
			l.synced.Wait()
		} else if err := l.lead(); err != nil {
			return err
		}
	}
	return nil
}

// lead syncs all that is appended. The caller holds mu, which is free during the sync, and found
// syncing false.
func (l *Log) lead() error {
	upTo, f := l.nextLSN.Load()-1, l.f // in this order: Append has written before it raises nextLSN
	l.syncing = true
	l.mu.Unlock()
	err := f.Sync()
	l.mu.Lock()
	l.syncing = false
	defer l.synced.Broadcast()
	if err != nil {
		return l.poison("sync", err)
	}
	l.durable.Store(upTo)
	return nil
}

// alone waits until nobody syncs, and keeps others from it until the caller calls share.
func (l *Log) alone() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.syncing {
		l.synced.Wait()
	}
	l.syncing = true
}

func (l *Log) share() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.syncing = false
	l.synced.Broadcast()
}

// Close syncs what was appended, seals the segment and closes the file. It must not run at the same time as Append;
// waiters in Sync are served first. The footer comes after the sync: it tells that all before it is durable, so that damage to the last
// records of a closed log is not taken for a torn tail. A poisoned log is closed without a sync, and Close says so. A
// second Close returns what the first did.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.syncing {
		l.synced.Wait()
	}
	if l.closed.Load() {
		return l.closeErr
	}
	l.closeErr = l.Poisoned()
	if l.closeErr == nil && l.Durable() < l.Next()-1 {
		l.closeErr = l.lead()
	}
	if l.closeErr == nil && !l.isSealed && l.at.frames > 0 {
		l.closeErr = l.seal()
	}
	l.closed.Store(true)
	if err := l.f.Close(); err != nil && l.closeErr == nil {
		l.closeErr = fmt.Errorf("wal: close: %w", err)
	}
	return l.closeErr
}
