// Package when parses points in time and ages on the command line, and the times of day in columns
// of timestamps.
//
//	point  integer                    hybrid time: microseconds since 1970 × 4096 + a logical part;
//	                                  0 is the beginning of time
//	       2026-11-21T10:00:00Z       RFC 3339: the end of that microsecond
//	       2026-11-21T10:00:00        the same in UTC, with a blank for the T too
//	       2026-11-21                 the end of that day, in UTC
//	       -90s -5m -2h -7d           before now
//	       now                        the end of this microsecond
//	       latest                     after every write
//	age    90s 5m 2h 7d               units as above
//	       forever
package when

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/oribi-db/oribi/internal/celltext"
	"github.com/oribi-db/oribi/mvcc"
)

// Latest is the point after every write.
const Latest = mvcc.Max

// Forever is an age without end, oribi.HistoryForever.
const Forever = time.Duration(-1)

// afterLast is the first microsecond that hybrid time cannot represent, in the year 2112.
const afterLast = int64(1) << 52

// Points lists the forms of a point in time, for messages and help.
const Points = "a timestamp, RFC 3339, a date, -90s, -5m, -2h, -7d, now, or latest"

// Parse parses a point in time; ages are relative to now.
func Parse(word string, now time.Time) (mvcc.Timestamp, error) {
	switch {
	case word == "latest":
		return Latest, nil
	case word == "now":
		return endOf(word, now)
	case strings.HasPrefix(word, "-"):
		age, err := span(word[1:])
		if err != nil {
			return 0, fmt.Errorf("%q is not a time before now: want a number and s, m, h, or d", word)
		}
		return endOf(word, now.Add(-age))
	case word != "" && strings.Trim(word, "0123456789") == "":
		return hybrid(word)
	}
	if day, err := time.Parse(time.DateOnly, word); err == nil {
		return endOf(word, day.AddDate(0, 0, 1).Add(-time.Microsecond))
	}
	t, err := celltext.ParseTime(word)
	if err != nil {
		return 0, fmt.Errorf("%q is not a time: want %s", word, Points)
	}
	return endOf(word, t)
}

// ParseRead is Parse for the time of a read: a date stands for the end of that day, or for now if
// that is earlier. So today's date is now, not a time ahead of the clock.
func ParseRead(word string, now time.Time) (mvcc.Timestamp, error) {
	if day, err := time.Parse(time.DateOnly, word); err == nil && day.AddDate(0, 0, 1).After(now) {
		return endOf(word, now)
	}
	return Parse(word, now)
}

// ParseState is ParseRead for the state of a store to read. A time before 2000, when no store existed, is
// the beginning of time.
func ParseState(word string, now time.Time) (mvcc.Timestamp, error) {
	ts, err := ParseRead(word, now)
	if _, early := ts.LooksLikeUnix(); early {
		ts = mvcc.First
	}
	return ts, err
}

// hybrid parses an integer.
func hybrid(word string) (mvcc.Timestamp, error) {
	n, err := strconv.ParseUint(word, 10, 64)
	ts := mvcc.Timestamp(n)
	unix, mistaken := ts.LooksLikeUnix()
	switch {
	case err != nil || ts == Latest:
		return 0, fmt.Errorf("timestamp %s is out of range", word)
	case n == 0:
		return mvcc.First, nil
	case n == 1:
		unix, mistaken = time.Unix(1, 0).UTC(), true
	}
	if mistaken {
		return 0, fmt.Errorf("%s looks like Unix time: write it as RFC 3339: %s", word, unix.Format(time.RFC3339Nano))
	}
	return ts, nil
}

func endOf(word string, t time.Time) (mvcc.Timestamp, error) {
	if t.UnixMicro() >= afterLast {
		return 0, fmt.Errorf("time %s is ahead of the clock", word)
	}
	// The last timestamp of a microsecond is one before the first of the next. Before 1970 there
	// are no timestamps: the read returns nothing.
	return max(mvcc.FromTime(t.Add(time.Microsecond)), mvcc.First+1) - 1, nil
}

var units = []struct {
	letter byte
	length time.Duration
}{{'d', 24 * time.Hour}, {'h', time.Hour}, {'m', time.Minute}, {'s', time.Second}}

// span parses a whole number of units.
func span(word string) (time.Duration, error) {
	if len(word) < 2 {
		return 0, strconv.ErrSyntax
	}
	for _, u := range units {
		if word[len(word)-1] != u.letter {
			continue
		}
		digits := word[:len(word)-1]
		if strings.Trim(digits, "0123456789") != "" {
			return 0, strconv.ErrSyntax
		}
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil || n > int64(math.MaxInt64/u.length) {
			return 0, strconv.ErrRange
		}
		return time.Duration(n) * u.length, nil
	}
	return 0, strconv.ErrSyntax
}

// ErrTooLong is the error of an age that is longer than any but forever.
var ErrTooLong = errors.New("too long")

// maxAge is the longest age that is not forever, in days.
const maxAge = math.MaxInt64 / (24 * time.Hour) * (24 * time.Hour)

// ParseAge parses an age of at least a second.
func ParseAge(word string) (time.Duration, error) {
	if word == "forever" {
		return Forever, nil
	}
	age, err := span(word)
	if errors.Is(err, strconv.ErrRange) {
		return 0, fmt.Errorf("age %s is %w: the most is %s", word, ErrTooLong, FormatAge(maxAge))
	}
	if err != nil {
		return 0, fmt.Errorf("%q is not an age: want a number and s, m, h, or d, or forever", word)
	}
	if age == 0 {
		return 0, fmt.Errorf("age %s is too short: the least is 1s", word)
	}
	return age, nil
}

// FormatAge formats an age of whole seconds in the form that ParseAge reads, in the largest unit
// that fits.
func FormatAge(age time.Duration) string {
	if age == Forever {
		return "forever"
	}
	for _, u := range units {
		if age%u.length == 0 {
			return strconv.FormatInt(int64(age/u.length), 10) + string(u.letter)
		}
	}
	return strconv.FormatInt(int64(age/time.Second), 10) + "s"
}
