package lesson

import (
	"fmt"
	"io/fs"
	"strings"
	"sync"
)

// Enough is the share of right answers above which a check is complete; at it, it is not.
const Enough = 0.75

// Quiz is a final check.
type Quiz struct {
	ID        string     `json:"id"`
	Title     string     `json:"title"`
	Questions []Question `json:"questions"`
	Open      []Block    `json:"open"` // to be answered in one's own words, with model answers; not scored
}

// Question has one right choice.
type Question struct {
	Text    string   `json:"text"`
	Choices []string `json:"choices"`
	Passage string   `json:"passage"` // where the answer stands: LESSON#ID
	right   int
	why     string
}

// Result is what answers to a check are worth.
type Result struct {
	Right    int      `json:"right"`
	Of       int      `json:"of"`
	Score    float64  `json:"score"`
	Complete bool     `json:"complete"` // more than Enough
	Answers  []Answer `json:"answers"`
}

// Answer is what one answer is worth.
type Answer struct {
	Given   int    `json:"given"` // from 1, as people see them
	Right   bool   `json:"right"`
	Why     string `json:"why"`
	Passage string `json:"passage"`
}

// Quizzes are the final checks: of the first lessons, on training with a GPU, and of all of them.
var Quizzes = sync.OnceValue(func() (all []*Quiz) {
	for _, id := range []string{"a", "b"} {
		q, err := readQuiz(id)
		if err != nil {
			panic(err)
		}
		all = append(all, q)
	}
	return all
})

// FindQuiz is the check with an id.
func FindQuiz(id string) (*Quiz, bool) {
	for _, q := range Quizzes() {
		if q.ID == id {
			return q, true
		}
	}
	return nil, false
}

// Judge scores answers, one for each question, from 0. Fewer or others are an error: a score is of all questions.
func (q *Quiz) Judge(given []int) (*Result, error) {
	if len(given) != len(q.Questions) {
		return nil, fmt.Errorf("there are %d questions, and answers to %d", len(q.Questions), len(given))
	}
	r := &Result{Of: len(given)}
	for i, g := range given {
		question := &q.Questions[i]
		if g < 0 || g >= len(question.Choices) {
			return nil, fmt.Errorf("question %d has choices 1 to %d, not %d", i+1, len(question.Choices), g+1)
		}
		if g == question.right {
			r.Right++
		}
		r.Answers = append(r.Answers, Answer{g + 1, g == question.right, question.why, question.Passage})
	}
	r.Score = float64(r.Right) / float64(r.Of)
	r.Complete = r.Score > Enough
	return r, nil
}

// readQuiz reads a check: lines "title: …", "? question", "- choice", "+ the right one", "= why", "@ passage", ":open …".
func readQuiz(id string) (*Quiz, error) {
	text, err := fs.ReadFile(texts, "text/quiz-"+id+".txt")
	if err != nil {
		return nil, err
	}
	q := &Quiz{ID: id}
	for i, line := range strings.Split(string(text), "\n") {
		if line, err = expand(line); err == nil {
			err = q.add(line)
		}
		if err != nil {
			return nil, fmt.Errorf("quiz-%s.txt:%d: %w", id, i+1, err)
		}
	}
	return q, nil
}

func (q *Quiz) add(line string) error {
	key, text, _ := strings.Cut(line, " ")
	if len(q.Questions) == 0 && key != "title:" && key != "?" && line != "" {
		return fmt.Errorf("%q before the first question", line)
	}
	var last *Question
	if n := len(q.Questions); n > 0 {
		last = &q.Questions[n-1]
	}
	switch key {
	case "":
	case "title:":
		q.Title = text
	case "?":
		q.Questions = append(q.Questions, Question{Text: text, right: -1})
	case "+":
		last.right = len(last.Choices)
		last.Choices = append(last.Choices, text)
	case "-":
		last.Choices = append(last.Choices, text)
	case "=":
		last.why = text
	case "@":
		last.Passage = text
	case ":open":
		question, answer, _ := strings.Cut(text, " || ")
		q.Open = append(q.Open, Block{Kind: Open, Text: question, Answer: answer})
	default:
		return fmt.Errorf("%q begins no line of a check", key)
	}
	return nil
}
