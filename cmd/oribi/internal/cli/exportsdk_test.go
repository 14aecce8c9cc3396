package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/oribi-db/oribi/carbondata"
	"github.com/oribi-db/oribi/cmd/oribi/internal/carbonlines"
	"github.com/oribi-db/oribi/internal/corpustest"
	"github.com/oribi-db/oribi/internal/jsonin"
	"github.com/oribi-db/oribi/internal/must"
	"github.com/oribi-db/oribi/internal/seedtest"
)

// sdkRows writes the rows that program, the reader of CarbonData's SDK, prints of a folder to a
// file, in the form of dump.
func sdkRows(t *testing.T, program, folder, name string) {
	t.Helper()
	var prefixes []string
	var types []carbondata.Column
	for line := range strings.Lines(succeed(t, "carbondata", "schema", folder)) {
		var c struct{ Name, Type string }
		must.Do(t, json.Unmarshal([]byte(line), &c))
		typ := must.Get(carbonlines.ParseType(c.Type))(t)
		types = append(types, typ)
		prefixes = append(prefixes, map[bool]string{true: "{", false: ","}[len(types) == 1]+strconv.Quote(c.Name)+":")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // the SDK can hang
	defer cancel()
	cmd := exec.CommandContext(ctx, program, folder)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	in := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	var out bytes.Buffer
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	var text []byte
	for lines.Scan() {
		text = text[:0]
		i := 0
		for w := jsonin.Walk(lines.Bytes()); w.Next(); i++ {
			text = appendGolden(t, append(text, prefixes[i]...), &types[i], w.Value)
		}
		out.Write(append(text, "}\n"...))
	}
	if err := cmd.Wait(); err != nil || lines.Err() != nil {
		t.Fatalf("%v, %v: %s", err, lines.Err(), errs.String())
	}
	put(t, name, out.String())
}

// TestSDKReadsExports exports tables, reads the folders with CarbonData's SDK, and loads what it
// reads into tables again.
func TestSDKReadsExports(t *testing.T) {
	folders, program := corpustest.NeedCarbonReader(t)
	store := newStore(t)
	dir := filepath.Dir(store)
	randomExport(t, seedtest.Rand(t), store, 5000)
	lineitem := []string{"l_orderkey", "l_partkey", "l_suppkey", "l_linenumber", "l_quantity", "l_extendedprice",
		"l_discount", "l_tax", "l_returnflag",
		"l_linestatus", "l_shipdate", "l_commitdate", "l_receiptdate", "l_shipinstruct", "l_shipmode", "l_comment"}
	exits(t, 0, "table", "load", store, "lineitem",
		filepath.Join(corpustest.Dir(t), "data", "lineitem-600k.tbl.gz"), "--create",
		"--key", "l_orderkey,l_linenumber", "--delimiter", "|", "--no-header", "--columns", strings.Join(lineitem, ","))
	for i, c := range []struct {
		table string
		args  []string
	}{
		{"lineitem", nil},
		{"t", nil},
		{"t", []string{"--compressor", "zstd", "--page-rows", "100", "--blocklet-size", "100000"}},
		{"t", []string{"--compressor", "gzip", "--local-dictionary", "off", "--inverted-index", "name"}},
	} {
		if i == folders {
			break
		}
		folder, text, table := filepath.Join(dir, fmt.Sprint("out", i)),
			filepath.Join(dir, fmt.Sprint(i, ".jsonl")), fmt.Sprint("back", i)
		exported(t, store, c.table, folder, c.args...)
		sdkRows(t, program, folder, text)
		put(t, filepath.Join(dir, "schema.json"), succeed(t, "table", "describe", store, c.table))
		succeed(t, "table", "create", store, table, "--schema", filepath.Join(dir, "schema.json"))
		exits(t, 0, "table", "load", store, table, text)
		same(t, fmt.Sprint(c.table, c.args), succeed(t, "table", "scan", store, table),
			succeed(t, "table", "scan", store, c.table))
	}
}
