package lab

import (
	"encoding/hex"
	"encoding/json"

	"github.com/oribi-db/oribi/compaction"
)

// eventLine is one line of events.jsonl.
type eventLine struct {
	Workload     string       `json:"workload"`
	Policy       string       `json:"policy"`
	Operations   int64        `json:"operations"`
	Kind         string       `json:"kind"`
	Why          string       `json:"why,omitempty"`
	Inputs       []rowsetLine `json:"inputs"`
	Outputs      []rowsetLine `json:"outputs"`
	Rows         int64        `json:"rows"`
	BytesWritten int64        `json:"bytes_written"`
}

type rowsetLine struct {
	ID    uint64 `json:"id"`
	From  string `json:"from"` // encoded key in hex, as To
	To    string `json:"to"`   // inclusive
	Rows  int64  `json:"rows"`
	Live  int64  `json:"live"`
	Bytes int64  `json:"bytes"`
}

// record adds an event to those of the run.
func (r *Result) record(step int64, e *compaction.Event) {
	rowsets := func(sets []compaction.RowSetInfo) []rowsetLine {
		list := []rowsetLine{}
		for _, s := range sets {
			list = append(list, rowsetLine{s.ID, hex.EncodeToString(s.MinKey), hex.EncodeToString(s.MaxKey), s.Rows, s.LiveRows, s.Bytes})
		}
		return list
	}
	line, err := json.Marshal(eventLine{r.Workload, r.Policy, step, string(e.Kind), e.Why, rowsets(e.Inputs), rowsets(e.Outputs), e.RowsWritten, e.BytesWritten})
	if err != nil {
		panic(err) // strings and numbers
	}
	r.events.Write(append(line, '\n'))
}
