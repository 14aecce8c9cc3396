package arrowio

import (
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/internal/calendar"
	"github.com/oribi-db/oribi/schema"
)

// Spark before 3.0, and later versions in their legacy mode, use the hybrid calendar of Java, see
// package calendar: the date 1500-01-01 is stored as the number of the Julian date 1500-01-01,
// which is 1500-01-10 in the Gregorian calendar. The metadata of a file says so. Spark itself reads
// such a file as here, except that it takes the days of times in the time zone of its session, and
// this package in UTC.
//
//	org.apache.spark.version         the calendar is hybrid if it is before 3.0, of INT96 before 3.1
//	org.apache.spark.legacyDateTime  there: the calendar of dates and of times is hybrid
//	org.apache.spark.legacyINT96     there: the calendar of times in INT96 is
const (
	sparkVersionKey     = "org.apache.spark.version"
	sparkLegacyKey      = "org.apache.spark.legacyDateTime"
	sparkLegacyInt96Key = "org.apache.spark.legacyINT96"
)

// hybridCalendar reports whether values of a physical type have the hybrid calendar, by the
// metadata of the file. find returns the value of a key, or nil.
func hybridCalendar(find func(key string) *string, physical parquet.Type) bool {
	least, key := 0, sparkLegacyKey
	if physical == parquet.Types.Int96 {
		least, key = 1, sparkLegacyInt96Key
	}
	if find(key) != nil {
		return true
	}
	version := find(sparkVersionKey)
	if version == nil {
		return false
	}
	major, rest, _ := strings.Cut(*version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	m, err := strconv.Atoi(major)
	n, errMinor := strconv.Atoi(minor)
	return err == nil && (m < 3 || m == 3 && errMinor == nil && n < least)
}

// calendarOf replaces the decoder of a column by a decoder that converts its dates or times, if the
// file's dates and times have the hybrid calendar. Bounds are not converted, and so they are not
// used.
func (p *parquetSource) calendarOf(l *leafReader) {
	kv := p.metadata.KeyValueMetadata()
	t := l.dense.Type
	if kv == nil || t != schema.Date && t != schema.Timestamp ||
		!hybridCalendar(kv.FindValue, l.leaf.node.PhysicalType()) {
		return
	}
	l.values = &hybridDates{l.values}
}

// hybridDates is a decoder of dates or times in the hybrid calendar.
type hybridDates struct{ decoder }

func (d *hybridDates) read(
	chunk file.ColumnChunkReader, n int, defs, reps []int16, v *batch.Vector,
) (levels, values int, err error) {
	levels, values, err = d.decoder.read(chunk, n, defs, reps, v)
	if err != nil {
		return levels, values, err
	}
	if v.Type == schema.Date {
		return levels, values, toGregorian(batch.Values[int32](v)[:values], calendar.Gregorian)
	}
	return levels, values, toGregorian(batch.Values[int64](v)[:values], calendar.GregorianMicros)
}

// toGregorian converts days or times. Errors: a *cellError for a date that only the Julian calendar
// has.
func toGregorian[T int32 | int64](values []T, convert func(int64) (int64, bool)) error {
	for i, x := range values {
		to, ok := convert(int64(x))
		if !ok {
			return cellErrorf(i, "%d is a February 29 that only the Julian calendar has, which Spark used before "+
				"1582-10-15", x)
		}
		values[i] = T(to)
	}
	return nil
}
