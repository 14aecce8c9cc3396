// Package access opens stores and tables for verbs, to read them next to a writer or to change
// them.
package access

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/when"
)

// Mode is how a command opens a store: to read it, next to a writer, or to change it, for which
// it waits for the lock.
type Mode struct {
	readOnly bool
	ctx      context.Context
	wait     time.Duration // for the lock of another process
}

var Reading = Mode{readOnly: true}

// Writing returns the mode of a command that changes a store, which must have the flag --wait.
func Writing(cmd *cobra.Command) Mode {
	word := cmd.Flags().Lookup("wait").Value.String()
	wait, err := parseWait(word)
	if err != nil {
		panic(fmt.Sprintf("access: --wait %s was not checked: %v", word, err))
	}
	return Mode{ctx: cmd.Context(), wait: wait}
}

// CheckWait reports a malformed value of --wait.
func CheckWait(cmd *cobra.Command) error {
	f := cmd.Flags().Lookup("wait")
	if f == nil {
		return nil
	}
	_, err := parseWait(f.Value.String())
	return err
}

// parseWait parses a duration: 30s, 5m, 2h, 1d, forever, or one of Go's such as 1m30s and 500ms.
func parseWait(word string) (time.Duration, error) {
	if d, err := time.ParseDuration(word); err == nil && d >= 0 {
		return d, nil
	}
	d, err := when.ParseAge(word)
	switch {
	case err != nil:
		return 0, fmt.Errorf("--wait: %q is not a duration: want one such as 30s, 5m, 2h, or forever", word)
	case d == when.Forever:
		return 1<<63 - 1, nil
	}
	return d, nil
}

const (
	firstPause   = 5 * time.Millisecond
	longestPause = 250 * time.Millisecond
)

// Open calls try, which opens something, until it is not locked by another process or the time to
// wait is over.
func (a Mode) Open(try func() error) error {
	begin := time.Now()
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		err := try()
		if a.wait == 0 || !errors.Is(err, oribi.ErrLocked) {
			return err
		}
		left := a.wait - time.Since(begin)
		if left <= 0 {
			return fmt.Errorf("%w; it stayed so for %v", err, a.wait)
		}
		select {
		case <-a.ctx.Done():
			return a.ctx.Err()
		case <-time.After(min(pause, left)):
		}
	}
}
