import pytest

from heedful.text.reading.patterns import held_forms
from tests.support.growth import assert_grows_linearly

FORMS = """
{{name}} {{user.first}} ${total} #{count} %{n} {0} {name} {value:.2f} {} [[link]] {%if%}
%s %1 %L2 %% $(name) :smile: $HOME/bin %APPDATA%\\Foo
%1$s %(count)d %-5.2f %@ $User $USER_NAME %PATH% __NAME__ ###T01### @user
<x/> <b> </b> <br/> </s> <unk> <0x0A> <|end|> &nbsp; &#8217; >>de<<
https://e.org/a?b=c&d=e www.e.org a.b@example.org example.com/path ftp://h/x
C:\\a\\b.txt \\\\host\\share NT\\SYSTEM DOMAIN\\user /usr/bin/env ./run.sh ~/notes
src/main.py x.tar.gz
\\n `code` snake_case call() #2796 v2.3.1 v2 1.2.3-rc1 2016-03-19 10.0.0.1
hahahahahaha aaaaaaaa c2VjcmV0IGtleSBvZiBhIHByb2dyYW0gMTIzNA==
1b4e28ba-2fa1-11d2-883f-0016d3cca427
"""


@pytest.mark.parametrize("form", FORMS.split())
def test_a_form_inside_a_sentence_is_held(form):
    line = f"the big red dog {form} sleeps"
    assert [line[start:end] for start, end in held_forms(line)] == [form]


@pytest.mark.parametrize(
    "form",
    [
        "{n, plural, one {# dog} other {# dogs}}",
        '<x id="1"/>',
        "<a href='x' b=\"c\">",
        "{{ a }}",
        "<!-- a -->",
    ],
)
def test_a_form_may_hold_blanks(form):
    line = f"the {form} dog"
    assert [line[start:end] for start, end in held_forms(line)] == [form]


@pytest.mark.parametrize(
    "line",
    [
        "50% sure, 100 % certain and/or not",
        "a < b and c > d, e.g. this one: 3.5 or 1,000.50 or 1.000.000",
        "it costs $5 or US$ 7; he said so... (really?) [sic]",
        "the U.S. and the U.K., at 10:30 a.m. on 19/3",
        "hahaha aaah Mississippi, internationalization of counterrevolutionaries",
        "dog's well-known e-mail #winning & co",
    ],
)
def test_running_text_holds_nothing(line):
    assert list(held_forms(line)) == []


def test_marks_behind_an_address_belong_to_the_sentence():
    line = "see (https://e.org/a_(b)), www.e.org. or https://e.org/x?!"
    held = [line[start:end] for start, end in held_forms(line)]
    assert held == ["https://e.org/a_(b)", "www.e.org", "https://e.org/x"]


@pytest.mark.parametrize(
    "part",
    ["a-", "-a.", "a_", "#", "a.", "-", "a/", "-a/", "{", "@", "a@", "<", "%", "$(", "[[", "__"],
)
def test_hostile_text_is_searched_in_linear_time(part):
    assert_grows_linearly(lambda count: list(held_forms(part * count)), 5_000)
