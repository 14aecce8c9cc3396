package storedir

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

const (
	// followPatience is how long a follower tries to read a store that changes.
	followPatience = 5 * time.Second
	// followDamaged is how many tries in a row must fail on the same files.
	followDamaged = 2
	// Between two tries a follower sleeps, for a time that doubles up to the second value.
	followSleep, followMaxSleep = time.Millisecond, 64 * time.Millisecond
)

// Retry calls try until it succeeds, or fails with an error that is not due to a writer: an error
// that comes again while nothing has changed in the files is damage. Errors: the errors of try;
// ErrLocked if a writer changes the store faster than it can be read; ctx.Err().
func (d Dir) Retry(ctx context.Context, try func() error) error {
	begin := time.Now()
	same, last := 0, ""
	for sleep := followSleep; ; sleep = min(2*sleep, followMaxSleep) {
		err := try()
		if err == nil || isLasting(err) {
			return err
		}
		now := d.fingerprint()
		if same++; now != last {
			same, last = 0, now
		}
		if same >= followDamaged {
			return err
		}
		d.Logger.Debug("a follower tries again", slog.Any("err", err))
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

// isLasting reports whether an error of a follower has nothing to do with a writer.
func isLasting(err error) bool {
	return errors.Is(err, fault.ErrNotStore) || errors.Is(err, fault.ErrUnsupported) ||
		errors.Is(err, fs.ErrPermission) ||
		errors.Is(err, fault.ErrClosed)
}

// fingerprint returns a text that changes when a writer changes the files in a way that can make a
// follower fail: it has all names except the names of pins, the lengths in wal/ and meta/, and the
// anchor.
func (d Dir) fingerprint() string {
	var b strings.Builder
	for _, sub := range []string{"", LogName, MetaName, DataName} {
		names, err := d.FS.List(d.File(sub))
		names = slices.DeleteFunc(names, func(name string) bool { return name == PinsName })
		fmt.Fprintln(&b, sub, names, err)
		if sub != LogName && sub != MetaName {
			continue
		}
		for _, name := range names {
			if info, err := d.FS.Stat(d.File(filepath.Join(sub, name))); err == nil {
				fmt.Fprintln(&b, info.Size())
			}
		}
	}
	anchor, err := d.read(AnchorName, 1<<20)
	fmt.Fprintf(&b, "%x %v", anchor, err)
	return b.String()
}
