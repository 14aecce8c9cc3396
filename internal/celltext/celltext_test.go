package celltext

import (
	"encoding/binary"
	"math"
	"testing"
	"time"

	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

// Package time is the oracle, for every day in the range of appendDate's own code and some around
// it.
func TestDatesAgreeWithPackageTime(t *testing.T) {
	var got, want []byte // reused: there are millions of days
	for days := int64(minPlainDate - 1000); days <= maxPlainDate+1000; days++ {
		want = time.Unix(days*secondsPerDay, 0).UTC().AppendFormat(want[:0], time.DateOnly)
		got = appendDate(got[:0], days)
		must.Equal(t, got, want, "day", days)
	}
	for _, days := range []int64{math.MinInt32, math.MaxInt32} {
		must.Equal(t, string(appendDate(nil, days)), time.Unix(days*secondsPerDay, 0).UTC().Format(time.DateOnly),
			"day", days)
	}
}

func BenchmarkDate(b *testing.B) {
	for _, c := range []struct {
		name string
		days int64
	}{{"here", 20_000}, {"package=time", maxPlainDate + 1}} {
		b.Run(c.name, func(b *testing.B) {
			buffer := make([]byte, 0, 32)
			for b.Loop() {
				buffer = appendDate(buffer[:0], c.days)
			}
		})
	}
}

func TestTimestampsAreRFC3339InPlainText(t *testing.T) {
	column := &schema.Column{Type: schema.Timestamp}
	for _, c := range []struct {
		micros     int64
		json, text string
	}{
		{0, "0", "1970-01-01T00:00:00Z"}, {1, "1", "1970-01-01T00:00:00.000001Z"},
		{-1, "-1", "1969-12-31T23:59:59.999999Z"},
		{1_700_000_000_500_000, "1700000000500000", "2023-11-14T22:13:20.5Z"},
		{-62_135_596_800_000_000, "-62135596800000000", "0001-01-01T00:00:00Z"},
		{253_402_300_799_999_999, "253402300799999999", "9999-12-31T23:59:59.999999Z"},
		{253_402_300_800_000_000, "253402300800000000", "253402300800000000"},
		{-62_135_596_800_000_001, "-62135596800000001", "-62135596800000001"},
		{math.MaxInt64, "9223372036854775807", "9223372036854775807"},
		{math.MinInt64, "-9223372036854775808", "-9223372036854775808"},
	} {
		cell := binary.LittleEndian.AppendUint64(nil, uint64(c.micros))
		must.Equal(t, string(AppendJSON(nil, column, cell)), c.json, c.micros)
		must.Equal(t, string(AppendText(nil, column, cell)), c.text, c.micros)
		must.Equal(t, must.Get(FromField(nil, column, []byte(c.text)))(t), cell, c.text, "is parsed as")
	}
}

func TestParseTimeAcceptsDocumentedForms(t *testing.T) {
	column := &schema.Column{Type: schema.Timestamp}
	for text, want := range map[string]int64{
		"2023-11-14T22:13:20Z": 1_700_000_000_000_000, "2023-11-14 22:13:20": 1_700_000_000_000_000,
		"2023-11-14T22:13:20.25":     1_700_000_000_250_000,
		"2023-11-14 22:13:20.000001": 1_700_000_000_000_001, "2023-11-14T23:13:20+01:00": 1_700_000_000_000_000,
		"1700000000000000":             1_700_000_000_000_000,
		"2023-11-14T22:13:20.1000000Z": 1_700_000_000_100_000, "-5": -5,
	} {
		cell := must.Get(FromField(nil, column, []byte(text)))(t)
		must.Equal(t, int64(binary.LittleEndian.Uint64(append(cell, make([]byte, 8)...))), want, text)
	}
	for _, text := range []string{"2023-11-14", "2023-11-14T22:13", "2023-02-30T00:00:00Z",
		"2023-11-14T24:00:00Z", "2023-11-14T22:13:60Z", "2023-11-14T22:13:20.0000001Z",
		"2023-11-14T22:13:20.", "2023-11-14T22:13:20,5", "2023-11-14 22:13:20Z+01:00", "now", "", "1.5",
		"0000-01-01T00:00:00Z "} {
		if cell, err := FromField(nil, column, []byte(text)); err == nil {
			t.Errorf("%q is parsed as %x", text, cell)
		}
	}
}
