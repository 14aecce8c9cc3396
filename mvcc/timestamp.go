package mvcc

import (
	"fmt"
	"time"
)

// Timestamp is a write batch's place in time: hybrid time, microseconds since 1970 shifted left by
// 12, plus a logical part that distinguishes batches of one microsecond. Source: tablet spec
// §4.1.
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

// FromTime is the first timestamp of t's microsecond. Times before 1970 give Min, times too late
// for a timestamp (from the year 2112 on) give Max.
func FromTime(t time.Time) Timestamp {
	us := t.UnixMicro()
	switch {
	case us < 0:
		return Min
	case us >= 1<<(64-logicalBits):
		return Max
	}
	return Timestamp(us) << logicalBits
}

// EndOf is the last timestamp of t's microsecond.
func EndOf(t time.Time) Timestamp { return FromTime(t) | (1<<logicalBits - 1) }

// Time is the physical part.
func (ts Timestamp) Time() time.Time { return time.UnixMicro(int64(ts >> logicalBits)).UTC() }

// String returns the number and its time.
func (ts Timestamp) String() string {
	return fmt.Sprintf("%d (%s)", uint64(ts), ts.Time().Format("2006-01-02T15:04:05.000000Z"))
}
