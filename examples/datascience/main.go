// Command datascience plays the part of a model that analyses data: it is an MCP client, over HTTP with a bearer token,
// that works in one session of a running cellblock. It prints the session as a notebook, saves the plots, and fails if
// anything is not as it should be: lost variables, a missing plot, an error that is no error.
//
//	datascience -url http://127.0.0.1:8787/mcp -token-file dev_token.txt -out demo-output
package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

// cell is one call of execute_python and what must come back.
type cell struct {
	title string
	code  string
	// want are texts that the result must contain.
	want []string
	// plots is how many images must come back, fails whether the cell must end in an error.
	plots int
	fails bool
}

var cells = []cell{
	{
		title: "Load a real data set",
		code: `from sklearn.datasets import load_wine
wine = load_wine(as_frame=True)
df = wine.frame
print(f"{len(df)} wines, {df.shape[1] - 1} measurements, {df.target.nunique()} growers")
df.iloc[:5, :5]`,
		want: []string{"178 wines, 13 measurements, 3 growers", "alcohol"},
	},
	{
		title: "Explore it: the variables are still there",
		code: `summary = df.groupby("target")[["alcohol", "flavanoids", "color_intensity", "proline"]].mean().round(2)
summary`,
		want: []string{"flavanoids", "1115.71"},
	},
	{
		title: "Plot",
		code: `import matplotlib.pyplot as plt
fig, ax = plt.subplots(figsize=(7, 4.5))
for grower, group in df.groupby("target"):
    ax.scatter(group.flavanoids, group.color_intensity, label=f"grower {grower}", alpha=0.75)
ax.set(xlabel="flavanoids", ylabel="colour intensity", title="Three growers, two measurements")
ax.legend()
plt.show()`,
		plots: 1,
	},
	{
		title: "Fit a model",
		code: `from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
X, y = df.drop(columns="target"), df.target
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)
model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(X_train, y_train)
accuracy = model.score(X_test, y_test)
print(f"accuracy on {len(y_test)} unseen wines: {accuracy:.3f}")
assert accuracy > 0.9`,
		want: []string{"accuracy on 89 unseen wines: "},
	},
	{
		title: "Make a mistake",
		code:  `df["alcohool"].mean()`,
		want:  []string{"KeyError", "alcohool"}, fails: true,
	},
	{
		title: "Go on: nothing was lost",
		code: `import numpy as np
from sklearn.metrics import confusion_matrix
matrix = confusion_matrix(y_test, model.predict(X_test))
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 4))
left.imshow(matrix, cmap="Blues")
for (i, j), n in np.ndenumerate(matrix):
    left.text(j, i, n, ha="center", va="center", color="white" if n > 15 else "black")
left.set(xlabel="predicted", ylabel="true", title="Confusion matrix", xticks=range(3), yticks=range(3))
weights = np.abs(model[-1].coef_).mean(axis=0)
order = np.argsort(weights)
right.barh(X.columns[order], weights[order])
right.set_title("What the model looks at")
fig.tight_layout()
plt.show()
print("mean alcohol:", round(df["alcohol"].mean(), 2))`,
		want: []string{"mean alcohol: 13.0"}, plots: 1,
	},
}

func main() {
	url := flag.String("url", "http://127.0.0.1:8787/mcp", "the server's MCP endpoint")
	tokenFile := flag.String("token-file", "", "file that holds the bearer token")
	out := flag.String("out", "demo-output", "folder for the plots")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if err := run(ctx, *url, *tokenFile, *out); err != nil {
		fmt.Fprintln(os.Stderr, "demo failed:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, url, tokenFile, out string) error {
	token, err := os.ReadFile(tokenFile)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	c, err := connect(ctx, url, strings.TrimSpace(string(token)))
	if err != nil {
		return err
	}
	defer c.Close()
	nb := notebook{client: c, out: out, session: fmt.Sprintf("wine-%d", os.Getpid())}
	for i, cell := range cells {
		if err := nb.play(ctx, i+1, cell); err != nil {
			return fmt.Errorf("cell %d, %q: %w", i+1, cell.title, err)
		}
	}
	return nb.close(ctx)
}

func connect(ctx context.Context, url, token string) (*client.Client, error) {
	t, err := transport.NewStreamableHTTP(url, transport.WithHTTPHeaders(map[string]string{"Authorization": "Bearer " + token}))
	if err != nil {
		return nil, err
	}
	c := client.NewClient(t)
	if err := c.Start(ctx); err != nil {
		return nil, err
	}
	var hello mcp.InitializeRequest
	hello.Params.ProtocolVersion = mcp.LATEST_PROTOCOL_VERSION
	hello.Params.ClientInfo = mcp.Implementation{Name: "cellblock-demo", Version: "1"}
	_, err = c.Initialize(ctx, hello)
	return c, err
}

// notebook plays cells in one session and prints them.
type notebook struct {
	client  *client.Client
	session string
	out     string
	plots   int
}

func (n *notebook) play(ctx context.Context, number int, cell cell) error {
	fmt.Printf("\n%s\n", styled("1", "## "+cell.title))
	fmt.Println(prefixed(fmt.Sprintf("In [%d]: ", number), cell.code))
	started := time.Now()
	result, err := n.call(ctx, "execute_python", map[string]any{"code": cell.code, "session_id": n.session})
	if err != nil {
		return err
	}
	var text strings.Builder
	plots := 0
	for _, block := range result.Content {
		switch b := block.(type) {
		case mcp.TextContent:
			text.WriteString(b.Text + "\n")
			fmt.Println(prefixed("   ", strings.TrimRight(b.Text, "\n")))
		case mcp.ImageContent:
			path, err := n.savePlot(b)
			if err != nil {
				return err
			}
			plots++
			fmt.Println("   [plot]", path)
		}
	}
	fmt.Println(styled("2", fmt.Sprintf("   (%.2f s for the client)", time.Since(started).Seconds())))
	return cell.check(result.IsError, text.String(), plots)
}

func (c cell) check(isError bool, text string, plots int) error {
	if isError != c.fails {
		return fmt.Errorf("isError is %t", isError)
	}
	if plots != c.plots {
		return fmt.Errorf("%d plots, want %d", plots, c.plots)
	}
	for _, want := range c.want {
		if !strings.Contains(text, want) {
			return fmt.Errorf("the result lacks %q", want)
		}
	}
	return nil
}

func (n *notebook) call(ctx context.Context, tool string, args map[string]any) (*mcp.CallToolResult, error) {
	var req mcp.CallToolRequest
	req.Params.Name, req.Params.Arguments = tool, args
	return n.client.CallTool(ctx, req)
}

// savePlot writes an image block to a file, after checking that it really is a picture of some size.
func (n *notebook) savePlot(b mcp.ImageContent) (string, error) {
	raw, err := base64.StdEncoding.DecodeString(b.Data)
	if err != nil {
		return "", err
	}
	picture, err := png.Decode(bytes.NewReader(raw))
	if err != nil {
		return "", fmt.Errorf("%s: %w", b.MIMEType, err)
	}
	if size := picture.Bounds().Size(); size.X < 200 || size.Y < 150 {
		return "", fmt.Errorf("the plot is only %v", size)
	}
	n.plots++
	path := filepath.Join(n.out, fmt.Sprintf("plot-%d.png", n.plots))
	return path, os.WriteFile(path, raw, 0o644)
}

func (n *notebook) close(ctx context.Context) error {
	if n.plots != 2 {
		return errors.New("not two plots in all")
	}
	result, err := n.call(ctx, "close_session", map[string]any{"session_id": n.session, "delete_files": true})
	if err == nil && result.IsError {
		err = errors.New("close_session failed")
	}
	return err
}

// styled gives text a terminal's attribute (1 bold, 2 faint) where standard output is a terminal.
func styled(attribute, text string) string {
	if info, err := os.Stdout.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return text
	}
	return "\033[" + attribute + "m" + text + "\033[0m"
}

func prefixed(prefix, text string) string {
	pad := strings.Repeat(" ", len(prefix))
	return prefix + strings.ReplaceAll(text, "\n", "\n"+pad)
}
