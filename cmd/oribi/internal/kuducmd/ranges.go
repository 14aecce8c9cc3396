package kuducmd

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/oribi-db/oribi/internal/bind"
	"github.com/oribi-db/oribi/internal/cell"
	"github.com/oribi-db/oribi/kudu/client"
	"github.com/oribi-db/oribi/schema"
)

// rangesFile is a file of --range: the columns of the ranges, which are in the key, and for each range
// its first values and those that are behind it. null, or no member, is no bound:
//
//	{"columns":["day"],"ranges":[{"to":["2026-01-01"]},{"from":["2026-01-01"],"hash":[{"columns":["id"],"buckets":4}]}]}
type rangesFile struct {
	Columns []string `json:"columns"`
	Ranges  []struct {
		From []json.RawMessage `json:"from"`
		To   []json.RawMessage `json:"to"`
		Hash []struct {
			Columns []string `json:"columns"`
			Buckets int      `json:"buckets"`
			Seed    uint32   `json:"seed"`
		} `json:"hash"`
	} `json:"ranges"`
}

// readRanges sets the ranges of p.
func readRanges(p *client.Partitioning, s *schema.Schema, text []byte) error {
	var f rangesFile
	if err := json.Unmarshal(text, &f); err != nil {
		return err
	}
	at, err := s.Project(f.Columns)
	if err != nil {
		return err
	}
	if len(at) == 0 {
		return errors.New(`no "columns"`)
	}
	p.Range = f.Columns
	for i := range f.Ranges {
		r := &f.Ranges[i]
		var out client.Range
		for _, b := range []struct {
			name string
			in   []json.RawMessage
			out  *[]any
		}{{"from", r.From, &out.From}, {"to", r.To, &out.To}} {
			if len(b.in) > len(at) {
				return fmt.Errorf("range %d: %q has %d values for %d columns", i+1, b.name, len(b.in), len(at))
			}
			for k, text := range b.in {
				c := &s.Columns[at[k]]
				value, err := cell.FromJSON(nil, c, text)
				if err != nil {
					return fmt.Errorf("range %d: %q: column %q: %w", i+1, b.name, c.Name, err)
				}
				*b.out = append(*b.out, bind.Value(c, value))
			}
		}
		for _, h := range r.Hash {
			out.Hash = append(out.Hash, client.Hash{Columns: h.Columns, Buckets: h.Buckets, Seed: h.Seed})
		}
		p.Ranges = append(p.Ranges, out)
	}
	return nil
}
