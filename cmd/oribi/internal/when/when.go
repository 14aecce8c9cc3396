// Package when reads the words by which the command names points in time and ages.
//
//	point  integer ≥ 1               hybrid time: microseconds since 1970 × 4096 + a logical part
//	       2026-11-21T10:00:00Z      RFC 3339: the end of that microsecond
//	       -90s -5m -2h -7d          before now
//	       latest                    everything there is
//	age    90s 5m 2h 7d              units as above
//	       forever
package when

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/mvcc"
)

// Latest stands for the newest timestamp that there is.
const Latest = mvcc.Max

// Forever stands for an age without end.
const Forever = oribi.HistoryForever

// afterLast is the first microsecond that hybrid time cannot tell, in the year 2112.
const afterLast = int64(1) << 52

// Parse reads a point in time; now is what the signed words count from.
func Parse(word string, now time.Time) (mvcc.Timestamp, error) {
	switch {
	case word == "latest":
		return Latest, nil
	case strings.HasPrefix(word, "-"):
		age, err := span(word[1:])
		if err != nil {
			return 0, fmt.Errorf("%q is no time before now: want a number and s, m, h or d", word)
		}
		return endOf(word, now.Add(-age))
	case word != "" && strings.Trim(word, "0123456789") == "":
		n, err := strconv.ParseUint(word, 10, 64)
		if err != nil || n < uint64(mvcc.First) || mvcc.Timestamp(n) == Latest {
			return 0, fmt.Errorf("timestamp %s is out of range", word)
		}
		return mvcc.Timestamp(n), nil
	}
	var t time.Time
	if err := t.UnmarshalText([]byte(word)); err != nil {
		return 0, fmt.Errorf("%q is no time: want a timestamp, RFC 3339, -90s, -5m, -2h, -7d or latest", word)
	}
	return endOf(word, t)
}

func endOf(word string, t time.Time) (mvcc.Timestamp, error) {
	if t.UnixMicro() >= afterLast {
		return 0, fmt.Errorf("time %s is ahead of the clock", word)
	}
	// The last timestamp of a microsecond is one before the first of the next. Before 1970 there is
	// none: nothing was written then.
	return max(mvcc.FromTime(t.Add(time.Microsecond)), mvcc.First+1) - 1, nil
}

var units = []struct {
	letter byte
	length time.Duration
}{{'d', 24 * time.Hour}, {'h', time.Hour}, {'m', time.Minute}, {'s', time.Second}}

// span reads a whole number of units.
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

// ParseAge reads an age, at least a second.
func ParseAge(word string) (time.Duration, error) {
	if word == "forever" {
		return Forever, nil
	}
	age, err := span(word)
	if err != nil {
		return 0, fmt.Errorf("%q is no age: want a number and s, m, h or d, or forever", word)
	}
	if age == 0 {
		return 0, fmt.Errorf("age %s: at least one second of history is kept", word)
	}
	return age, nil
}

// FormatAge writes an age of whole seconds as ParseAge reads it, in the largest unit that fits.
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
