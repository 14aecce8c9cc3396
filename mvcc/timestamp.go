package mvcc

import (
	"fmt"
	"time"
)

// Timestamp is the hybrid time of a write batch: microseconds since 1970 shifted left by 12, plus a
// logical part that distinguishes batches within one microsecond. Source: tablet spec §4.1.
type Timestamp uint64

const (
	logicalBits = 12

	// Min is before every write batch.
	Min Timestamp = 0
	// First is the lowest timestamp that a write batch can get.
	First Timestamp = 1
	// Last is the highest timestamp that a write batch can get; Kudu keeps those above for itself.
	Last Timestamp = 1<<64 - 3
	// Max is after every write batch.
	Max Timestamp = 1<<64 - 1
)

// FromTime returns the first timestamp of t's microsecond: Min for times before 1970, Max for times
// from the year 2112 on.
func FromTime(t time.Time) Timestamp { return FromMicros(t.UnixMicro()) }

// FromMicros returns the first timestamp of a microsecond since 1970: Min for those before, Max for
// those from the year 2112 on.
func FromMicros(us int64) Timestamp {
	switch {
	case us < 0:
		return Min
	case us >= 1<<(64-logicalBits):
		return Max
	}
	return Timestamp(us) << logicalBits
}

// EndOf returns the last timestamp of t's microsecond.
func EndOf(t time.Time) Timestamp { return FromTime(t) | (1<<logicalBits - 1) }

// firstPlausible is the hybrid time of 2000-01-01. No store is that old.
const firstPlausible = Timestamp(946_684_800_000_000 << logicalBits)

// LooksLikeUnix reports whether ts is a number that is too low for a hybrid time since 2000, and so
// most likely a Unix time by mistake. unix is that time, in the unit that gives a plausible year:
// nanoseconds, microseconds, milliseconds, or seconds. Min and First are the beginning of time.
func (ts Timestamp) LooksLikeUnix() (unix time.Time, ok bool) {
	if ts <= First || ts >= firstPlausible {
		return time.Time{}, false
	}
	switch n := int64(ts); {
	case n >= 1e17:
		return time.Unix(0, n).UTC(), true
	case n >= 1e14:
		return time.UnixMicro(n).UTC(), true
	case n >= 1e11:
		return time.UnixMilli(n).UTC(), true
	default:
		return time.Unix(n, 0).UTC(), true
	}
}

// Time returns the physical part.
func (ts Timestamp) Time() time.Time { return time.UnixMicro(int64(ts >> logicalBits)).UTC() }

// Micros returns the physical part in microseconds since 1970.
func (ts Timestamp) Micros() int64 { return int64(ts >> logicalBits) }

// String formats the number and its time.
func (ts Timestamp) String() string {
	return fmt.Sprintf("%d (%s)", uint64(ts), ts.Time().Format("2006-01-02T15:04:05.000000Z"))
}
