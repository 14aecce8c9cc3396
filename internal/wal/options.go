package wal

import (
	"fmt"
	"log/slog"
	"math"

	"github.com/oribi-db/oribi/lsn"
	"github.com/oribi-db/oribi/vfs"
)

const (
	defaultSegmentBytes = 32 << 20
	maxFrameBytes       = 16 << 20 // largest payload of a frame; a longer one is damage to a reader
	maxParts            = math.MaxUint16 + 1
	maxNumber           = 999_999_999_999 // 12 digits, as in a segment's name
	maxSegmentBytes     = 64 << 30        // its frames, of at least 64 bytes, are counted in 32 bits
)

// Options configure a log: its directory, and how it is split into files and frames.
type Options struct {
	FS       vfs.FS
	Dir      string   // must exist
	Instance [16]byte // of the store; segments of another one are refused

	// SegmentBytes is the length at which a segment is closed. One record that is longer has a
	// segment of its own. Default 32 MiB, at most 64 GiB.
	SegmentBytes int64
	// FrameBytes is the largest payload of one frame, at most 16 MiB, which is the default. A
	// longer record spans frames. Readers do not need it.
	FrameBytes int

	// Durable, if not nil, is called after each sync with the highest durable LSN, before any call
	// of Sync returns. It must not call the log.
	Durable func(upTo lsn.LSN)

	// Live says that another process may write to the log. Replay then does not warn of states that
	// are normal while a Log writes, such as a newest segment without a footer.
	Live bool

	ahead   aheadRules  // zero = defaultAhead
	windows windowRules // zero = defaultWindows

	// Logger reports torn tails, removed files and poison. nil disables it.
	Logger *slog.Logger
}

// filled returns o with its defaults.
func (o Options) filled() (Options, error) {
	if o.SegmentBytes == 0 {
		o.SegmentBytes = defaultSegmentBytes
	}
	if o.FrameBytes == 0 {
		o.FrameBytes = maxFrameBytes
	}
	if o.ahead == (aheadRules{}) {
		o.ahead = defaultAhead
	}
	if o.windows == (windowRules{}) {
		o.windows = defaultWindows
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	switch {
	case o.FS == nil:
		return o, fmt.Errorf("wal: no file system")
	case o.SegmentBytes < 0 || o.SegmentBytes > maxSegmentBytes:
		return o, fmt.Errorf("wal: segment size %d, at most %d", o.SegmentBytes, int64(maxSegmentBytes))
	case o.FrameBytes < 0 || o.FrameBytes > maxFrameBytes:
		return o, fmt.Errorf("wal: frame size %d, at most %d", o.FrameBytes, maxFrameBytes)
	}
	return o, nil
}
