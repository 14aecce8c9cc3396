package oribi

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/oribi-db/oribi/internal/fault"
)

// A follower reads the files of the store in this order, and takes no lock:
//
//	anchor      at least as new as the last commit that was confirmed before
//	metadata    as of one commit, at an epoch that the anchor accepts, or a later one
//	containers  opened: what the writer removes from now on stays readable, what it punches is detected
//	log         from log_start on, up to the first record that is not complete or needs later metadata
//
//	writer      append 7   append 8   flush: commit of epoch 5   append 9   release of the log below 9
//	follower        anchor 4   metadata 4                log 1 … 9: as of 9, from files of epoch 4
//	             or anchor 4   metadata 4                                     log: 1 is missing, again
//
// Metadata and log need not be of one moment: the log after metadata of an earlier moment is what a
// crash leaves, and replay is exact for it. What only the metadata has, such as new tables, ends
// the log (see logCheck).
//
// A step that fails has met a change, or damage. It was damage if the next tries fail too, and
// nothing has changed in between.

const (
	// followPatience is how long a follower tries to open a store that changes.
	followPatience = 5 * time.Second
	// followDamaged is how many tries in a row must fail on the same files.
	followDamaged = 2
	// Between two tries a follower sleeps, for a time that doubles up to the second value.
	followSleep, followMaxSleep = time.Millisecond, 64 * time.Millisecond
)

// openFollower opens the store without locks.
func openFollower(dir string, o *Options) (s *Store, err error) {
	err = tryFollowing(context.Background(), o, dir, func() error {
		s, err = openOnce(dir, o)
		return err
	})
	return s, err
}

// tryFollowing calls try until it succeeds, or its error is not due to a writer. Errors: ErrLocked
// if a writer changes the store faster than it can be read; ctx.Err().
func tryFollowing(ctx context.Context, o *Options, dir string, try func() error) error {
	begin := time.Now()
	same, last := 0, ""
	for sleep := followSleep; ; sleep = min(2*sleep, followMaxSleep) {
		err := try()
		if err == nil || isLasting(err) {
			return err
		}
		now := fingerprint(o, resolve(o.FS, dir))
		if same++; now != last {
			same, last = 0, now
		}
		if same >= followDamaged {
			return err
		}
		o.Logger.Debug("a follower tries again", slog.Any("err", err))
		if time.Since(begin) > followPatience {
			return fmt.Errorf("%w: a writer changes the store faster than it can be read: %v", fault.ErrLocked, err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(sleep):
		}
	}
}

// isLasting reports whether an error of a follower's open has nothing to do with a writer.
func isLasting(err error) bool {
	return errors.Is(err, fault.ErrNotStore) || errors.Is(err, fault.ErrUnsupported) || errors.Is(err, fs.ErrPermission) || errors.Is(err, fault.ErrClosed)
}

// fingerprint returns what distinguishes the files of a store from what they were before, as far as
// a writer that makes an open of a follower fail would have changed it: all names but those of
// pins, the lengths in wal/ and meta/, and the anchor.
func fingerprint(o *Options, dir string) string {
	var b strings.Builder
	for _, sub := range []string{"", walName, metaName, dataName} {
		names, err := o.FS.List(filepath.Join(dir, sub))
		names = slices.DeleteFunc(names, func(name string) bool { return name == readersName })
		fmt.Fprintln(&b, sub, names, err)
		if sub != walName && sub != metaName {
			continue
		}
		for _, name := range names {
			if info, err := o.FS.Stat(filepath.Join(dir, sub, name)); err == nil {
				fmt.Fprintln(&b, info.Size())
			}
		}
	}
	anchor, err := readFile(o.FS, filepath.Join(dir, anchorName), 1<<20)
	fmt.Fprintf(&b, "%x %v", anchor, err)
	return b.String()
}
