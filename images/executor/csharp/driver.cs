// Evaluates C# for the kernel beside it, which sends one line for each piece of work: a word, a command, the code in base64.
// What the code writes goes to the terminal, and behind it a mark with the word and the answer, JSON in base64.
using System;
using System.Collections;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Reflection;
using System.Text;
using System.Threading;
using Mono.CSharp;

static class Driver
{
    static Evaluator evaluator;
    static readonly Errors errors = new Errors();
    static readonly object turn = new object();
    static Thread working; // null: nothing is to be interrupted

    static int Main()
    {
        Console.SetOut(Terminal());
        Console.SetError(Console.Out);
        var settings = new CompilerSettings();
        settings.AssemblyReferences.AddRange(new[] { "System.Numerics", "System.Xml.Linq", "System.Net.Http" });
        evaluator = new Evaluator(new CompilerContext(settings, errors)) {
            InteractiveBaseClass = typeof(object), DescribeTypeExpressions = true, WaitOnTask = true };
        evaluator.ReferenceAssembly(typeof(CellblockCell).Assembly);
        using (var input = new StreamReader(new FileStream("/dev/fd/3", FileMode.Open, FileAccess.Read, FileShare.ReadWrite)))
            for (string line; (line = input.ReadLine()) != null;)
            {
                if (line == "interrupt") Interrupt();
                else Begin(line.Split(' '));
            }
        return 0;
    }

    static void Interrupt()
    {
        lock (turn)
            if (working != null) working.Abort();
    }

    // Begin does one piece of work in a thread of its own, which writes the mark.
    static void Begin(string[] parts)
    {
        var code = Encoding.UTF8.GetString(Convert.FromBase64String(parts.Length > 2 ? parts[2] : ""));
        var thread = new Thread(() =>
        {
            var answer = Work(parts[1], code);
            var mark = "\x1e" + parts[0] + ":" + Convert.ToBase64String(Encoding.UTF8.GetBytes(answer.ToString())) + "\x1e";
            using (var terminal = Terminal()) terminal.Write(mark);
        }, 64 << 20) { IsBackground = true };
        lock (turn) working = thread;
        thread.Start();
    }

    // The terminal; each text is written at once.
    static StreamWriter Terminal()
    {
        return new StreamWriter(new FileStream("/dev/tty", FileMode.Open, FileAccess.Write, FileShare.ReadWrite, 1 << 16), new UTF8Encoding(false)) { AutoFlush = true };
    }

    // Work does one piece of work, in a thread that an interrupt aborts.
    static Json Work(string command, string code)
    {
        try
        {
            try
            {
                switch (command)
                {
                    case "start": return Start();
                    case "variables": return Variables();
                    case "complete": return Complete(code);
                    default: return Run(code);
                }
            }
            finally
            {
                lock (turn) working = null; // from here on nothing is aborted
            }
        }
        catch (ThreadAbortException)
        {
            Thread.ResetAbort();
            return Failure("KeyboardInterrupt", "", new string[0]);
        }
        catch (Exception e)
        {
            return Failure(e);
        }
    }

    static Json Start()
    {
        foreach (var name in new[] { "System", "System.Linq", "System.Collections.Generic", "System.IO", "System.Text",
            "System.Text.RegularExpressions", "System.Threading", "System.Threading.Tasks", "System.Numerics" })
            evaluator.Run("using " + name + ";");
        evaluator.Run("1 + 1;");
        errors.Taken();
        return new Json();
    }

    static readonly object none = new object();

    static Json Run(string code)
    {
        object value = none;
        var shown = false;
        foreach (var piece in Pieces.Of(code))
        {
            CompiledMethod compiled = null;
            var said = new List<string>();
            if (!piece.Unfinished || Compile("CellblockCell.Value(" + piece.Text + "\n)", out compiled).Count > 0) // where a * b declares no pointer
                said = Compile(piece.Text, out compiled);
            if (said.Count > 0) return Failure("CompilationError", string.Join("\n", said.Take(20)), new string[0]);
            value = none;
            if (compiled != null) compiled(ref value);
            shown = value != none && !piece.Ended && !(value is System.Threading.Tasks.Task);
        }
        var answer = new Json();
        if (shown) answer["value"] = Show.Value(value);
        return answer;
    }

    static List<string> Compile(string text, out CompiledMethod compiled)
    {
        errors.Taken();
        var rest = evaluator.Compile(text, out compiled);
        var said = errors.Taken();
        if (rest != null && said.Count == 0) said.Add("the code is not complete");
        return said;
    }

    static Json Failure(string name, string value, IEnumerable<string> lines)
    {
        var answer = new Json();
        answer["ename"] = name;
        answer["evalue"] = value;
        answer["traceback"] = lines.ToList();
        return answer;
    }

    static Json Failure(Exception e)
    {
        return Failure(e.GetType().FullName, e.Message, Trace.Of(e));
    }

    static Json Variables()
    {
        var found = new List<Json>();
        var names = typeof(Evaluator).GetField("fields", BindingFlags.NonPublic | BindingFlags.Instance);
        var fields = names == null ? null : names.GetValue(evaluator) as IDictionary;
        foreach (DictionaryEntry entry in fields ?? new Hashtable())
        {
            var field = entry.Value.GetType().GetProperties().Select(p => p.GetValue(entry.Value, null)).OfType<FieldInfo>().FirstOrDefault();
            if (field == null) continue;
            object value = null;
            try { value = field.GetValue(null); }
            catch (Exception) { } // one that cannot be had
            var one = new Json();
            one["name"] = (string)entry.Key;
            one["type"] = Show.Type(field.FieldType);
            if (value is ICollection) one["length"] = ((ICollection)value).Count;
            one["preview"] = Show.Plain(value) ? Show.Value(value, 200) : "";
            found.Add(one);
        }
        var answer = new Json();
        answer["variables"] = found.Skip(Math.Max(0, found.Count - 500)).ToList();
        answer["more"] = Math.Max(0, found.Count - 500);
        return answer;
    }

    static Json Complete(string code)
    {
        string prefix;
        var found = evaluator.GetCompletions(code, out prefix) ?? new string[0];
        errors.Taken();
        var answer = new Json();
        answer["matches"] = found.Select(f => prefix + f).Distinct().Take(500).ToList();
        return answer;
    }
}

// Trace tells where an exception comes from, the outermost call first and what has led to it before it: all but its own message.
static class Trace
{
    const int Deep = 5, Members = 10, Frames = 20;
    static readonly string[] own = { "Mono.CSharp.", "<InteractiveExpressionClass>", "Driver.", "(wrapper ", "System.Runtime.ExceptionServices." };

    public static List<string> Of(Exception e)
    {
        var lines = new List<string>();
        var several = e as AggregateException;
        if (several != null)
            foreach (var one in several.Flatten().InnerExceptions.Take(Members)) Before(lines, one, Deep, "It is one of those that the following exception is made of:");
        else if (e.InnerException != null) Before(lines, e.InnerException, Deep, "The above exception was the direct cause of the following exception:");
        lines.AddRange(Calls(e));
        return lines;
    }

    static void Before(List<string> lines, Exception e, int deep, string link)
    {
        if (e.InnerException != null && deep > 1) Before(lines, e.InnerException, deep - 1, "The above exception was the direct cause of the following exception:");
        lines.AddRange(Calls(e));
        lines.Add(e.GetType().FullName + ": " + e.Message);
        lines.Add(link);
    }

    // Calls are an exception's, without those of the evaluator, and of libraries only the one that the user's code has made.
    static List<string> Calls(Exception e)
    {
        var calls = new List<string>();
        foreach (var line in (e.StackTrace ?? "").Split('\n').Reverse())
        {
            var call = line.Trim();
            if (!call.StartsWith("at ") || own.Any(o => call.StartsWith("at " + o))) continue;
            call = System.Text.RegularExpressions.Regex.Replace(call, @" \[0x[0-9a-f]+\] in .*$", "");
            if (Library(call) && calls.Count > 0 && Library(calls[calls.Count - 1])) continue;
            calls.Add(call);
        }
        return Bounded(Collapsed(calls)).Select(c => "  " + c).ToList();
    }

    static bool Library(string call) { return call.StartsWith("at System.") || call.StartsWith("at Mono.") || call.StartsWith("at Microsoft."); }

    // Collapsed counts calls that repeat, as those of a function that calls itself do.
    static List<string> Collapsed(List<string> calls)
    {
        var kept = new List<string>();
        for (int i = 0, end; i < calls.Count; i = end)
        {
            for (end = i + 1; end < calls.Count && calls[end] == calls[i]; ) end++;
            kept.Add(calls[i]);
            if (end - i > 1) kept.Add("  [... " + (end - i - 1) + " more calls like this one ...]");
        }
        return kept;
    }

    static List<string> Bounded(List<string> calls)
    {
        if (calls.Count <= Frames) return calls;
        var kept = calls.Take(Frames / 4).ToList();
        kept.Add("  [... " + (calls.Count - Frames) + " more calls ...]");
        kept.AddRange(calls.Skip(calls.Count - Frames + Frames / 4));
        return kept;
    }
}

// CellblockCell is what cells see of this program.
public static class CellblockCell
{
    // Value is the value of a cell's last expression.
    public static object Value(object value) { return value; }
}

// Errors keeps what the compiler says.
class Errors : ReportPrinter
{
    readonly List<string> said = new List<string>();

    public override void Print(AbstractMessage message, bool showFullPath)
    {
        base.Print(message, showFullPath); // counts
        if (!message.IsWarning)
            said.Add("(" + message.Location.Row + "," + message.Location.Column + "): error CS" + message.Code.ToString("0000") + ": " + message.Text);
    }

    public List<string> Taken()
    {
        var taken = said.ToList();
        said.Clear();
        Reset();
        return taken;
    }
}

// Piece is a part of a cell that the evaluator takes at once: it takes statements, or declarations and directives.
class Piece
{
    public string Text;
    public bool Declares;
    public bool Ended; // by a semicolon
    public bool Unfinished; // an expression, perhaps
}

static class Pieces
{
    static readonly HashSet<string> declares = new HashSet<string> { "class", "struct", "interface", "enum", "delegate", "namespace" };
    static readonly HashSet<string> modifiers = new HashSet<string> { "public", "internal", "private", "protected", "static", "abstract", "sealed", "partial", "unsafe" };
    static readonly HashSet<string> goesOn = new HashSet<string> { "else", "catch", "finally", "while" };

    // Of splits a cell. Each piece is preceded by as many line ends as there are before it, so that the compiler counts right.
    public static List<Piece> Of(string code)
    {
        var pieces = new List<Piece>();
        var begin = 0;
        foreach (var end in Ends(code))
        {
            var text = code.Substring(begin, end - begin);
            var words = Words(text);
            if (words.Count > 0 || text.Any(c => !char.IsWhiteSpace(c)))
            {
                var declaring = Declares(words, text);
                var last = pieces.LastOrDefault();
                var bare = Bare(text).TrimEnd();
                var unfinished = !declaring && bare.Length > 0 && !bare.EndsWith(";") && !bare.EndsWith("}");
                if (last != null && last.Declares == declaring && !unfinished) last.Text += text;
                else pieces.Add(new Piece { Text = new string('\n', code.Take(begin).Count(c => c == '\n')) + text, Declares = declaring, Unfinished = unfinished });
            }
            begin = end;
        }
        pieces.RemoveAll(p => Bare(p.Text).Trim().Length == 0);
        foreach (var p in pieces) p.Ended = Bare(p.Text).TrimEnd().EndsWith(";");
        return pieces;
    }

    static bool Declares(List<string> words, string text)
    {
        var word = words.SkipWhile(modifiers.Contains).FirstOrDefault();
        if (word == "using") return System.Text.RegularExpressions.Regex.IsMatch(Bare(text), @"^\s*using\s+(static\s+)?[\w.]+\s*(=[^;(]*)?;");
        return word != null && declares.Contains(word) && !(word == "delegate" && Bare(text).TrimStart().StartsWith("delegate ("));
    }

    static List<string> Words(string text)
    {
        return System.Text.RegularExpressions.Regex.Matches(System.Text.RegularExpressions.Regex.Replace(Bare(text), @"^\s*(\[[^\]]*\]\s*)+", ""), @"[A-Za-z_]\w*")
            .Cast<System.Text.RegularExpressions.Match>().Take(6).Select(m => m.Value).ToList();
    }

    // Ends are where statements and declarations end that are in nothing else.
    static IEnumerable<int> Ends(string code)
    {
        var bare = Bare(code);
        var depth = 0;
        for (var i = 0; i < bare.Length; i++)
        {
            var c = bare[i];
            if (c == '(' || c == '[' || c == '{') depth++;
            if (c == ')' || c == ']' || c == '}') depth = Math.Max(0, depth - 1);
            if (depth > 0) continue;
            if (c == ';') yield return i + 1;
            else if (c == '}')
            {
                var after = bare.Substring(i + 1).TrimStart();
                var word = new string(after.TakeWhile(char.IsLetter).ToArray());
                if (after.Length > 0 && ";,.)]?=".IndexOf(after[0]) >= 0 || goesOn.Contains(word)) continue;
                yield return i + 1;
            }
        }
        if (bare.Length > 0) yield return bare.Length;
    }

    // Bare is code of the same length without what is in comments, strings and characters.
    static string Bare(string code)
    {
        var bare = code.ToCharArray();
        for (var i = 0; i < bare.Length;)
        {
            var end = Inert(code, i);
            for (var k = i; k < end; k++) if (bare[k] != '\n') bare[k] = code[i] == '/' ? ' ' : '_';
            i = Math.Max(end, i + 1);
        }
        return new string(bare);
    }

    // Inert returns where the comment, string or character ends that begins at i; i if none does.
    static int Inert(string code, int i)
    {
        Func<string, int, int> past = (mark, from) => { var at = code.IndexOf(mark, Math.Min(from, code.Length), StringComparison.Ordinal); return at < 0 ? code.Length : at + mark.Length; };
        var rest = code.Length - i;
        if (rest > 1 && code[i] == '/' && code[i + 1] == '/') { var at = code.IndexOf('\n', i); return at < 0 ? code.Length : at; }
        if (rest > 1 && code[i] == '/' && code[i + 1] == '*') return past("*/", i + 2);
        if (rest > 1 && (code[i] == '@' && code[i + 1] == '"' || rest > 2 && (code.Substring(i, 3) == "$@\"" || code.Substring(i, 3) == "@$\"")))
        {
            for (var k = code.IndexOf('"', i) + 1; k < code.Length; k++)
                if (code[k] == '"') { if (k + 1 < code.Length && code[k + 1] == '"') k++; else return k + 1; }
            return code.Length;
        }
        if (code[i] != '"' && code[i] != '\'') return i;
        for (var k = i + 1; k < code.Length; k++)
        {
            if (code[k] == '\\') k++;
            else if (code[k] == code[i] || code[k] == '\n') return k + 1;
        }
        return code.Length;
    }
}

// Show writes values for people.
static class Show
{
    // Plain tells whether a value can be shown without code of the user's.
    public static bool Plain(object value)
    {
        return value == null || value.GetType().Assembly == typeof(object).Assembly || value.GetType().Assembly == typeof(Enumerable).Assembly;
    }

    public static string Value(object value, int most = 100000)
    {
        var b = new StringBuilder();
        Write(b, value, 0, most);
        return b.Length > most ? b.ToString(0, most) + "…" : b.ToString();
    }

    static void Write(StringBuilder b, object value, int depth, int most)
    {
        if (value == null) b.Append("null");
        else if (value is string) b.Append('"').Append(((string)value).Replace("\\", "\\\\").Replace("\"", "\\\"")).Append('"');
        else if (value is char) b.Append('\'').Append(value).Append('\'');
        else if (value is bool) b.Append((bool)value ? "true" : "false");
        else if (value is IFormattable) b.Append(((IFormattable)value).ToString(null, System.Globalization.CultureInfo.InvariantCulture));
        else if (value is IEnumerable && depth < 4) WriteAll(b, (IEnumerable)value, depth, most);
        else b.Append(value);
    }

    static void WriteAll(StringBuilder b, IEnumerable values, int depth, int most)
    {
        var count = 0;
        b.Append("{");
        foreach (var one in values)
        {
            b.Append(count == 0 ? " " : ", ");
            if (++count > 1000 || b.Length > most) { b.Append("…"); break; }
            if (values is IDictionary && one is DictionaryEntry)
            {
                var entry = (DictionaryEntry)one;
                Write(b, entry.Key, depth + 1, most);
                b.Append(": ");
                Write(b, entry.Value, depth + 1, most);
            }
            else Write(b, one, depth + 1, most);
        }
        b.Append(count == 0 ? "}" : " }");
    }

    public static string Type(Type type)
    {
        if (type.IsArray) return Type(type.GetElementType()) + "[]";
        var name = type.Name.Split('`')[0];
        return type.IsGenericType ? name + "<" + string.Join(", ", type.GetGenericArguments().Select(Type)) + ">" : name;
    }
}

// Json is an object that writes itself.
class Json : Dictionary<string, object>
{
    public override string ToString()
    {
        var b = new StringBuilder();
        Write(b, this);
        return b.ToString();
    }

    static void Write(StringBuilder b, object value)
    {
        if (value is Json) b.Append("{").Append(string.Join(",", ((Json)value).Select(p => Text(p.Key) + ":" + Of(p.Value)))).Append("}");
        else if (value is string) b.Append(Text((string)value));
        else if (value is IEnumerable) b.Append("[").Append(string.Join(",", ((IEnumerable)value).Cast<object>().Select(Of))).Append("]");
        else b.Append(value ?? "null");
    }

    static string Of(object value)
    {
        var b = new StringBuilder();
        Write(b, value);
        return b.ToString();
    }

    static string Text(string text)
    {
        var b = new StringBuilder("\"");
        foreach (var c in text)
            if (c < ' ' || c == '"' || c == '\\' || char.IsSurrogate(c)) b.Append("\\u").Append(((int)c).ToString("x4"));
            else b.Append(c);
        return b.Append("\"").ToString();
    }
}
