package cli

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/oribi-db/oribi/cmd/oribi/internal/exit"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/schema"
)

// Public files of other programs are loaded, or refused with an exit code and a message that names
// the place. Rows loaded from CSV and JSON have the values that encoding/csv and encoding/json
// read; package arrowio compares the values of Parquet and Arrow. $ORIBI_PUBLIC is a folder with
// such files. The log counts them by exit code and message.
func TestPublicFiles(t *testing.T) {
	folder := os.Getenv("ORIBI_PUBLIC")
	if folder == "" {
		t.Skip("no files: set ORIBI_PUBLIC to a folder with CSV, JSON, Parquet, and Arrow files")
	}
	p := publicFiles{store: newStore(t), counts: map[string]int{}}
	must.Do(t, filepath.WalkDir(folder, func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && publicSuffix.MatchString(name) {
			p.load(t, name)
		}
		return err
	}))
	if len(p.counts) == 0 {
		t.Errorf("%s has no files", folder)
	}
	for _, what := range slices.SortedFunc(maps.Keys(p.counts), func(a, b string) int {
		return p.counts[b] - p.counts[a]
	}) {
		t.Logf("%8d %s", p.counts[what], what)
	}
}

var (
	publicSuffix = regexp.MustCompile(
		`(?i)\.((csv|tsv|json|jsonl|ndjson)(\.gz)?|parquet|parq|arrow|arrows|arrow_file|stream|feather)$`)
	// faultWords are in no message to a user.
	faultWords = regexp.MustCompile(`\bpanic|runtime error|goroutine|interface conversion|<nil>|%!`)
	// placed is the message of a file that is not loaded: with a line, a row, a column, or why
	// none.
	placed = regexp.MustCompile(`:\d+: |row \d+: |column "|has no rows|neither rows nor columns`)
	digits = regexp.MustCompile(`\d+`)
	quoted = regexp.MustCompile(`"(\\.|[^"\\])*"`)
)

// publicFiles loads files into one store.
type publicFiles struct {
	store  string
	counts map[string]int
}

func (p *publicFiles) load(t *testing.T, name string) {
	watch := time.AfterFunc(5*time.Minute, func() { panic("the load does not end: " + name) })
	defer watch.Stop()
	out, errs, code := command(nil, "table", "load", p.store, "t", name, "--create", "--key", "auto")
	defer command(nil, "table", "drop", p.store, "t", "--yes") // a load that fails keeps the batches before
	lines := strings.Split(strings.TrimSuffix(errs, "\n"), "\n")
	lines = slices.DeleteFunc(lines, func(line string) bool {
		return strings.HasPrefix(line, "types: ") || strings.HasPrefix(line, "note: ")
	})
	must.Equal(t, out, "", name, errs)
	must.Equal(t, faultWords.MatchString(errs), false, name, errs)
	if code != exit.Done {
		p.refused(t, name, lines, code)
		return
	}
	p.count(code, "loaded")
	records, err := publicRecords(name)
	if err != nil || records == nil {
		if err != nil {
			t.Logf("%s is loaded: %v", name, err)
		}
		return
	}
	must.Do(t, p.compare(records), name)
}

func (p *publicFiles) count(code int, what string) {
	p.counts[fmt.Sprintf("exit code %d: %s", code, what)]++
}

// refused checks the message about a file that was not loaded.
func (p *publicFiles) refused(t *testing.T, name string, lines []string, code int) {
	message := strings.TrimPrefix(lines[0], "oribi: ")
	text := regexp.MustCompile(`(?i)(csv|tsv|json|jsonl|ndjson)$`).MatchString(name)
	switch {
	case len(lines) > 3 || code != exit.Failed && code != exit.Misused && code != exit.Damage:
		t.Errorf("%s: exit code %d: %s", name, code, lines)
	case code == exit.Damage && text:
		t.Errorf("text is not damaged: %s", message)
	case !strings.Contains(message, filepath.Base(name)) && code != exit.Misused:
		t.Errorf("%s: the message does not name the file: %s", name, message)
	case text && !placed.MatchString(message):
		t.Errorf("no place: %s", message)
	}
	p.count(code, quoted.ReplaceAllString(digits.ReplaceAllString(strings.ReplaceAll(message, name, "FILE"), "N"), "…"))
}

// publicRecord is a row: the values by column, a json.Number, a string, a bool, nil, or, of nested
// values, a json.RawMessage. Text of CSV is a csvField.
type publicRecord map[string]any

// csvField is the text of a field, which has no type.
type csvField string

// publicRecords reads a file as the standard library does; nil if it is not text.
func publicRecords(name string) ([]publicRecord, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	plain := strings.TrimSuffix(name, ".gz")
	if plain != name {
		r, err := gzip.NewReader(bytes.NewReader(data))
		if err == nil {
			data, err = io.ReadAll(r)
		}
		if err != nil {
			return nil, err
		}
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	data = bytes.ReplaceAll(data, []byte("\r\r\n"), []byte("\n"))
	if !bytes.Contains(data, []byte("\n")) {
		data = bytes.ReplaceAll(data, []byte("\r"), []byte("\n"))
	}
	switch strings.ToLower(filepath.Ext(plain)) {
	case ".csv":
		return csvRecords(data, ',')
	case ".tsv":
		return csvRecords(data, '\t')
	case ".json", ".jsonl", ".ndjson":
		return jsonRecords(data)
	}
	return nil, nil
}

func csvRecords(data []byte, delimiter rune) ([]publicRecord, error) {
	r := csv.NewReader(bytes.NewReader(data))
	r.Comma, r.FieldsPerRecord = delimiter, -1
	all, err := r.ReadAll()
	if err != nil || len(all) == 0 {
		return nil, err
	}
	records := []publicRecord{}
	for _, fields := range all[1:] {
		record := publicRecord{}
		for i, name := range all[0] {
			if i < len(fields) {
				record[name] = csvField(fields[i])
			}
		}
		records = append(records, record)
	}
	return records, nil
}

func jsonRecords(data []byte) ([]publicRecord, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	if text := bytes.TrimSpace(data); len(text) > 0 && text[0] == '[' {
		if _, err := d.Token(); err != nil {
			return nil, err
		}
	}
	records := []publicRecord{}
	for d.More() {
		members := map[string]json.RawMessage{}
		if err := d.Decode(&members); err != nil {
			return nil, err
		}
		record := publicRecord{}
		for name, member := range members {
			record[name] = jsonValue(member)
		}
		records = append(records, record)
	}
	return records, nil
}

func jsonValue(member json.RawMessage) any {
	if member[0] == '{' || member[0] == '[' {
		return member
	}
	var v any
	d := json.NewDecoder(bytes.NewReader(member))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return err
	}
	return v
}

// compare compares the rows of the table with records.
func (p *publicFiles) compare(records []publicRecord) error {
	out, errs, code := command(nil, "table", "scan", p.store, "t", "--format", "jsonl")
	if code != 0 {
		return errors.New(errs)
	}
	rows, err := jsonRecords([]byte(out))
	if err != nil {
		return err
	}
	if len(rows) != len(records) {
		return fmt.Errorf("%d rows, want %d", len(rows), len(records))
	}
	types := typesOf(p.store)
	for i, want := range records {
		for name := range want {
			if _, ok := types[name]; !ok {
				return fmt.Errorf("no column %q", name)
			}
		}
		for name, typeName := range types {
			if got, w := rows[i][name], want[name]; name != schema.AutoIncrementName &&
				!samePublicValue(typeName, got, w) {
				return fmt.Errorf("row %d: column %q of type %s: %v, want %q", i+1, name, typeName, got, w)
			}
		}
	}
	return nil
}

// typesOf returns the types of the columns of table t.
func typesOf(store string) map[string]string {
	var d struct{ Columns []struct{ Name, Type string } }
	out, _, _ := command(nil, "table", "describe", store, "t", "--format", "json")
	types := map[string]string{}
	if json.Unmarshal([]byte(out), &d) == nil {
		for _, c := range d.Columns {
			types[c.Name] = c.Type
		}
	}
	return types
}

// samePublicValue reports whether a value of a table equals a value of a file. Numbers are equal as
// numbers.
func samePublicValue(typeName string, got, want any) bool {
	field, isField := want.(csvField)
	switch want := want.(type) {
	case nil:
		return got == nil
	case json.RawMessage:
		var compact bytes.Buffer
		return json.Compact(&compact, want) == nil && got == compact.String()
	case bool:
		return got == want || got == strconv.FormatBool(want)
	case json.Number:
		return got == string(want) || samePublicNumber(typeName, fmt.Sprint(got), string(want))
	case string:
		field = csvField(want)
	}
	text := string(field)
	switch typeName, _, _ := strings.Cut(typeName, "("); typeName {
	case "string", "varchar":
		s, ok := got.(string)
		return ok && strings.ReplaceAll(s, "\r\n", "\n") == strings.ReplaceAll(text, "\r\n", "\n") ||
			got == nil && isField && text == ""
	case "bool":
		return got == nil && text == "" || fmt.Sprint(got) == strings.ToLower(text)
	case "date":
		return got == nil && text == "" || got == text
	case "timestamp":
		return got == nil && text == "" || samePublicTime(fmt.Sprint(got), text)
	}
	return got == nil && text == "" || samePublicNumber(typeName, fmt.Sprint(got), text)
}

func samePublicNumber(typeName, got, want string) bool {
	if strings.HasPrefix(typeName, "double") {
		g, err := strconv.ParseFloat(got, 64)
		w, wrong := strconv.ParseFloat(want, 64)
		return err == nil && wrong == nil && (math.Float64bits(g) == math.Float64bits(w) || g != g && w != w)
	}
	g, ok := new(big.Rat).SetString(got)
	w, right := new(big.Rat).SetString(want)
	return ok && right && g.Cmp(w) == 0
}

func samePublicTime(got, want string) bool {
	want = strings.Replace(want, " ", "T", 1)
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02T15:04:05Z0700",
		"2006-01-02T15:04:05Z07", "2006-01-02"} {
		if at, err := time.Parse(layout, want); err == nil {
			return got == strconv.FormatInt(at.UnixMicro(), 10)
		}
	}
	return false
}
