package when

import (
	"testing"
	"time"

	"github.com/oribi-db/oribi/mvcc"
)

func TestPointsInTime(t *testing.T) {
	end := func(t time.Time) mvcc.Timestamp { return mvcc.Timestamp(t.UnixMicro())*4096 + 4095 }
	now := time.UnixMicro(1_700_000_000_000_001)
	for _, c := range []struct {
		word string
		want mvcc.Timestamp // 0 = an error
	}{
		{"7205759403792793600", 7205759403792793600}, {"0", 1}, {"00", 1}, {"18446744073709551615", 0},
		{"18446744073709551616", 0},
		{"1970-01-01T00:00:00Z", 4095}, {"1970-01-01T00:00:00.000001Z", 8191},
		{"1970-01-01T01:00:00.0000019+01:00", 8191},
		{"1900-01-01T00:00:00Z", 1}, {"2112-01-01T00:00:00Z", end(time.Date(2112, 1, 1, 0, 0, 0, 0, time.UTC))},
		{"2113-01-01T00:00:00Z", 0}, {"9999-12-31T00:00:00Z", 0},
		{"-90s", end(now.Add(-90 * time.Second))}, {"-5m", end(now.Add(-5 * time.Minute))},
		{"-2h", end(now.Add(-2 * time.Hour))}, {"-7d", end(now.Add(-7 * 24 * time.Hour))}, {"-106751d", 1},
		{"latest", Latest}, {"", 0}, {"-", 0}, {"-5", 0}, {"-s", 0}, {"--5s", 0}, {"-99999999999999999d", 0},
		{"-1w", 0}, {"5m", 0}, {"1.5", 0}, {"+1", 0},
		{"2026-01-01", end(time.Date(2026, 1, 1, 23, 59, 59, 999_999_000, time.UTC))},
		{"2026-01-01T00:00:00", end(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))},
		{"2026-01-01 10:00:00.000001", end(time.Date(2026, 1, 1, 10, 0, 0, 1000, time.UTC))}, {"now", end(now)},
		{"2026-13-01T00:00:00Z", 0}, {"2026-02-30", 0}, {"2026-1-1", 0}, {"2026-01-01 10:00", 0},
		{"2026-01-01 10:00:00,5", 0}, {"LATEST", 0},
		{"1", 0}, {"3877620940799999999", 0}, {"3877620940800000000", 3877620940800000000},
	} {
		got, err := Parse(c.word, now)
		if (err != nil) != (c.want == 0) || err == nil && got != c.want {
			t.Errorf("%q: got %d, %v, want %d", c.word, got, err, c.want)
		}
	}
}

// The end of a day that is not over would be ahead of the clock, and the read refused.
func TestDateOfAReadIsNowIfTheDayIsNotOver(t *testing.T) {
	end := func(t time.Time) mvcc.Timestamp { return mvcc.Timestamp(t.UnixMicro())*4096 + 4095 }
	now := time.Date(2023, 11, 14, 22, 13, 20, 1000, time.FixedZone("", -5*3600)) // the 15th in UTC
	endOfDay := func(day int) mvcc.Timestamp { return end(time.Date(2023, 11, day, 23, 59, 59, 999_999_000, time.UTC)) }
	for _, c := range []struct {
		word string
		want mvcc.Timestamp
	}{
		{"2023-11-13", endOfDay(13)}, {"2023-11-14", endOfDay(14)}, {"2023-11-15", end(now)},
		{"2023-11-16", end(now)}, {"9999-12-31", end(now)},
		{"2023-11-15T00:00:00", end(time.Date(2023, 11, 15, 0, 0, 0, 0, time.UTC))}, {"now", end(now)},
		{"latest", Latest}, {"-1h", end(now.Add(-time.Hour))},
	} {
		for name, parse := range map[string]func(string, time.Time) (mvcc.Timestamp,
			error){"ParseRead": ParseRead, "ParseState": ParseState} {
			if got, err := parse(c.word, now); err != nil || got != c.want {
				t.Errorf("%s %s: got %d, %v, want %d", name, c.word, got, err, c.want)
			}
		}
	}
	midnight := time.Date(2023, 11, 15, 0, 0, 0, 0, time.UTC)
	if got, err := ParseRead("2023-11-14", midnight); err != nil || got != endOfDay(14) {
		t.Errorf("a day that is just over: got %d, %v", got, err)
	}
}

func TestAgesRoundTrip(t *testing.T) {
	for _, c := range []struct{ word, want string }{
		{"forever", "forever"}, {"7d", "7d"}, {"15m", "15m"}, {"90s", "90s"}, {"60s", "1m"}, {"48h", "2d"},
		{"604800s", "7d"},
		{"0s", ""}, {"-5m", ""}, {"", ""}, {"5", ""}, {"1.5h", ""}, {"99999999999d", ""}, {"latest", ""},
	} {
		age, err := ParseAge(c.word)
		got := ""
		if err == nil {
			got = FormatAge(age)
		}
		if got != c.want {
			t.Errorf("%q: got %q, %v, want %q", c.word, got, err, c.want)
		}
	}
}

func TestLongAgesAreRefusedWithTheLongest(t *testing.T) {
	if age, err := ParseAge("106751d"); err != nil || FormatAge(age) != "106751d" {
		t.Errorf("got %v, %v", age, err)
	}
	for _, word := range []string{"106752d", "99999999999999999999s"} {
		want := "age " + word + " is too long: the most is 106751d"
		if _, err := ParseAge(word); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", word, err, want)
		}
	}
}

func TestUnixTimeIsRefusedWithItsRFC3339(t *testing.T) {
	for _, c := range []struct{ word, want string }{
		{"1700000000", "2023-11-14T22:13:20Z"}, {"1700000000123", "2023-11-14T22:13:20.123Z"},
		{"1700000000123456", "2023-11-14T22:13:20.123456Z"}, {"1700000000123456789", "2023-11-14T22:13:20.123456789Z"},
		{"1", "1970-01-01T00:00:01Z"},
	} {
		want := c.word + " looks like Unix time: write it as RFC 3339: " + c.want
		if _, err := Parse(c.word, time.Now()); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", c.word, err, want)
		}
	}
}
