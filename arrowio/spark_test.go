package arrowio

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	pq "github.com/apache/arrow-go/v18/parquet/schema"

	"github.com/oribi-db/oribi"
	"github.com/oribi-db/oribi/internal/must"
)

// sparkFile returns a Parquet file with days as dates d, and at noon as times t, and as times i in
// INT96, and with keys and values in its metadata.
func sparkFile(t *testing.T, days []int32, keys ...string) []byte {
	t.Helper()
	node := func(name string, of pq.LogicalType, physical parquet.Type) pq.Node {
		return must.Get(pq.NewPrimitiveNodeLogical(name, parquet.Repetitions.Optional, of, physical, 0, -1))(t)
	}
	fields := pq.FieldList{node("d", pq.DateLogicalType{}, parquet.Types.Int32),
		node("t", pq.NewTimestampLogicalType(true, pq.TimeUnitMicros), parquet.Types.Int64),
		pq.NewInt96Node("i", parquet.Repetitions.Optional, -1)}
	root := must.Get(pq.NewGroupNode("schema", parquet.Repetitions.Required, fields, -1))(t)
	stored := metadata.NewKeyValueMetadata()
	for i := 0; i < len(keys); i += 2 {
		stored.Append(keys[i], keys[i+1])
	}
	const noon = 12 * 60 * 60
	times, old := make([]int64, len(days)), make([]parquet.Int96, len(days))
	defs := append(bytes16(len(days), 1), 0) // a NULL at the end
	for i, day := range days {
		times[i] = (int64(day)*86400 + noon) * 1e6
		binary.LittleEndian.PutUint64(old[i][:], noon*1e9)
		binary.LittleEndian.PutUint32(old[i][8:], uint32(day+2440588))
	}
	var out bytes.Buffer
	w := file.NewParquetWriter(&out, root, file.WithWriteMetadata(stored))
	group := w.AppendRowGroup()
	for range fields {
		column, err := group.NextColumn()
		if err == nil {
			switch c := column.(type) {
			case *file.Int32ColumnChunkWriter:
				_, err = c.WriteBatch(days, defs, nil)
			case *file.Int64ColumnChunkWriter:
				_, err = c.WriteBatch(times, defs, nil)
			case *file.Int96ColumnChunkWriter:
				_, err = c.WriteBatch(old, defs, nil)
			}
		}
		if err == nil {
			err = column.Close()
		}
		must.Do(t, err)
	}
	must.Do(t, w.Close())
	return out.Bytes()
}

func bytes16(n int, value int16) []int16 {
	list := make([]int16, n)
	for i := range list {
		list[i] = value
	}
	return list
}

// Days in the hybrid calendar of Java, and their dates.
var (
	hybridDays  = []int32{-719164, -171597, -171595, -141428, -141427, 0}
	julianDates = []string{"0001-01-01", "1500-02-28", "1500-03-01", "1582-10-04", "1582-10-15", "1970-01-01"}
	plainDates  = []string{"0000-12-30", "1500-03-09", "1500-03-11", "1582-10-14", "1582-10-15", "1970-01-01"}
)

// noonOf returns the microseconds of noon of a date.
func noonOf(t *testing.T, date string) string {
	at := must.Get(time.Parse(time.DateOnly, date))(t)
	return strconv.FormatInt(at.Add(12*time.Hour).UnixMicro(), 10)
}

// TestSparksOldCalendar reads files whose metadata says that dates are Julian before 1582-10-15,
// and others.
func TestSparksOldCalendar(t *testing.T) {
	const version, legacy, legacy96 = "org.apache.spark.version", "org.apache.spark.legacyDateTime",
		"org.apache.spark.legacyINT96"
	for name, c := range map[string]struct {
		keys          []string
		dates, int96s []string
	}{
		"2.4":              {[]string{version, "2.4.6"}, julianDates, julianDates},
		"3.0":              {[]string{version, "3.0.1"}, plainDates, julianDates},
		"3.1":              {[]string{version, "3.1.0"}, plainDates, plainDates},
		"3.5":              {[]string{version, "3.5.0"}, plainDates, plainDates},
		"4.0":              {[]string{version, "4.0.0-preview"}, plainDates, plainDates},
		"legacy mode":      {[]string{version, "3.5.0", legacy, ""}, julianDates, plainDates},
		"both modes":       {[]string{version, "3.5.0", legacy, "", legacy96, ""}, julianDates, julianDates},
		"INT96 alone":      {[]string{version, "3.5.0", legacy96, ""}, plainDates, julianDates},
		"without metadata": {nil, plainDates, plainDates},
		"no version":       {[]string{version, "none"}, plainDates, plainDates},
	} {
		t.Run(name, func(t *testing.T) {
			f, rows := opened(t, "parquet", sparkFile(t, hybridDays, c.keys...), checked(t), ReadOptions{})
			defer f.Close()
			defer rows.Release()
			got := foreignRows(t, rows)
			must.Equal(t, len(got), len(hybridDays)+1, got)
			must.Equal(t, got[len(hybridDays)], "[null,null,null]", got)
			for i, row := range got[:len(hybridDays)] {
				if want := `["` + c.dates[i] + `","` + noonOf(t, c.dates[i]) + `","` +
					noonOf(t, c.int96s[i]) + `"]`; row != want {
					t.Errorf("%s, want %s", row, want)
				}
			}
		})
	}
}

// TestSparksOldCalendarInFilters selects rows by dates, which the bounds in the file do not have.
func TestSparksOldCalendarInFilters(t *testing.T) {
	data := sparkFile(t, []int32{-171595, -171594}, "org.apache.spark.version", "2.4.6")
	f := must.Get(OpenParquet(bytes.NewReader(data), int64(len(data)), OpenOptions{}))(t)
	defer f.Close()
	for text, want := range map[string]int{"d = date '1500-03-01'": 1, "d <= date '1500-03-02'": 2,
		"d > date '1500-03-05'": 0, "t < timestamp '1500-03-02T00:00:00Z'": 1} {
		p := must.Get(oribi.ParsePredicate(f.Definition().Columns, text))(t)
		rows := must.Get(f.Read(context.Background(), ReadOptions{Where: []oribi.Predicate{p}}))(t)
		must.Equal(t, len(foreignRows(t, rows)), want, text)
		rows.Release()
	}
}

// TestSparksLeapDaysAreRefused reads 1500-02-29, which the calendar of tables does not have.
func TestSparksLeapDaysAreRefused(t *testing.T) {
	for _, column := range []string{"d", "t", "i"} {
		f, rows := opened(t, "parquet", sparkFile(t, []int32{0, -171596}, "org.apache.spark.version", "2.4.6"),
			checked(t), ReadOptions{Columns: []string{column}})
		for rows.Next() {
		}
		bad, ok := errors.AsType[*ColumnError](rows.Err())
		if !ok || bad.Column != column || !errors.Is(rows.Err(), ErrRow) || errors.Is(rows.Err(), ErrCorrupt) ||
			!strings.Contains(rows.Err().Error(), "only the Julian calendar") {
			t.Errorf("%s: %v", column, rows.Err())
		}
		rows.Release()
		f.Close()
	}
}

// TestTimesWithoutDateAreRefused reads a time in INT96 with a negative Julian day, which Impala
// wrote for a time without a date, and the first day that is a date.
func TestTimesWithoutDateAreRefused(t *testing.T) {
	f, rows := opened(t, "parquet", sparkFile(t, []int32{-2440588}), checked(t), ReadOptions{Columns: []string{"i"}})
	if got, want := foreignRows(t, rows), `["-210866760000000000"]`; len(got) != 2 || got[0] != want {
		t.Errorf("%v, want %s", got, want)
	}
	rows.Release()
	f.Close()
	f, rows = opened(t, "parquet", sparkFile(t, []int32{0, -2440590}), checked(t), ReadOptions{Columns: []string{"i"}})
	defer f.Close()
	defer rows.Release()
	for rows.Next() {
	}
	bad, ok := errors.AsType[*ColumnError](rows.Err())
	if !ok || bad.Column != "i" || bad.Row != 1 || !errors.Is(bad, ErrRow) ||
		!strings.Contains(bad.Error(), "no date: its Julian day is -2") {
		t.Errorf("%v", rows.Err())
	}
}
